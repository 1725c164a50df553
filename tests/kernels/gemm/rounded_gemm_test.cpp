#include "kernels/gemm/packed_product.h"
#include "kernels/rows/round_rows.h"
#include "support/rounded_rows.h"

namespace foretoken {
namespace {

struct RoundedGemmCase {
  GroupScale scale;
  int n;
  int k;
};

// Products of rounded rows with weights of E4M3.
class RoundedGemm : public PackedProductTest, public testing::WithParamInterface<RoundedGemmCase> {
 protected:
  void SetUp() override {
    PackedProductTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    n_ = GetParam().n;
    k_ = GetParam().k;
    const GroupScale scale = GetParam().scale;
    form_ = {8, scale, scale == GroupScale::kFloat ? 128 : 1, CodeTable::kE4m3};
    form_.rounds_rows = true;
    if (!device().multiplies_rounded(form_, k_, DType::kBF16)) GTEST_SKIP() << "not on this device";
    if (is_cpu() && n_ > 1000) GTEST_SKIP() << "this shape is for GPUs";
    rows_ = random_quantized_rows(form_, n_, k_, 1);
    w_ = dequantized(form_, rows_, k_);
  }

  // Quantised where the device keeps it so, else widened, which then changes w_.
  const void* pack(WeightOrder order) {
    if (device().keeps_quantized(form_, k_)) return pack_form(form_, rows_, order, false);
    const TypedData widened = typed_data(w_, DType::kBF16);
    w_ = widened.values;
    const WeightPart part{widened.bytes.data(), n_};
    weights_.push_back(device().pack_weight({&part, 1}, k_, DType::kBF16, order));
    return weights_.back();
  }

  const void* input_of(const void* x, int rows, int max_rows) override {
    void* rounded = marked(static_cast<size_t>(rounded_rows_bytes(max_rows, k_, DType::kBF16)));
    round_rows(queue(), {counts(rows), x, rounded, RowKind::kToken, 0, max_rows, k_, DType::kBF16});
    return rounded;
  }

  // What x_ becomes.
  std::vector<float> rounded_x() {
    const std::vector<float> rounded = rounded_rows(x_, k_);
    return is_cpu() ? typed_data(rounded, DType::kBF16).values : rounded;
  }

  QuantForm form_;
  std::vector<std::byte> rows_;
  std::vector<float> w_;
};

// Hopper's sums of E4M3 keep some 13 bits behind the largest of 32 terms.
TEST_P(RoundedGemm, MatchesDouble) {
  const void* weight = pack(WeightOrder::kPlain);
  const void* x = random_x(5, 2);
  const std::vector<float> y = multiply(x, weight, 5, 6);
  expect_near_double(y, rounded_x(), w_, is_cpu() ? 2e-6 : 1e-3);
}

// The bits of a row depend on nothing but the row, whatever kernel a number of rows takes.
TEST_P(RoundedGemm, RowsAreBitEqualForEveryCount) {
  expect_rows_bit_equal(pack(WeightOrder::kPlain),
                        {2, 8, 9, 16, 17, 32, 64, 128, 129, 256, 300, 512});
}

TEST_P(RoundedGemm, GatesItsOwnProducts) {
  const void* plain = pack(WeightOrder::kPlain);
  const void* pairs = pack(WeightOrder::kGateUp);
  expect_gated_as_apart(plain, pairs, random_x(300, 4), {1, 12, 30, 60, 200, 300});
}

std::string name_of_rounded(const testing::TestParamInfo<RoundedGemmCase>& test) {
  return std::string(test.param.scale == GroupScale::kFloat ? "groups" : "rows") + "_n" +
         std::to_string(test.param.n);
}

INSTANTIATE_TEST_SUITE_P(Forms, RoundedGemm,
                         testing::Values(RoundedGemmCase{GroupScale::kFloatOfRow, 200, 512},
                                         RoundedGemmCase{GroupScale::kFloat, 200, 512},
                                         RoundedGemmCase{GroupScale::kFloatOfRow, 1544, 1280},
                                         RoundedGemmCase{GroupScale::kFloat, 1544, 1280},
                                         RoundedGemmCase{GroupScale::kFloatOfRow, 8712, 256},
                                         RoundedGemmCase{GroupScale::kFloat, 8712, 256}),
                         name_of_rounded);

}  // namespace
}  // namespace foretoken
