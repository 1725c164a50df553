#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/float8.h"
#include "kernels/gemm/gated_act.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack_rows.h"
#include "kernels/rows/round_rows.h"
#include "support/quant_data.h"
#include "support/row_ops.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

struct RoundedGemmCase {
  GroupScale scale;
  int n;
  int k;
};

// Products of rounded rows with weights of E4M3.
class RoundedGemm : public RowOpTest, public testing::WithParamInterface<RoundedGemmCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto& [scale, n, k] = GetParam();
    form_ = {8, scale, scale == GroupScale::kFloat ? 128 : 1, CodeTable::kE4m3};
    form_.rounds_rows = true;
    if (!device().multiplies_rounded(form_, k, DType::kBF16)) GTEST_SKIP() << "not on this device";
    if (is_cpu() && n > 1000) GTEST_SKIP() << "this shape is for GPUs";
    rows_ = random_quantized_rows(form_, n, k, 1);
    w_ = dequantized(form_, rows_, k);
  }
  void TearDown() override {
    if (!weights_.empty()) drain();
    for (void* weight : weights_) device().free_weight(weight);
    RowOpTest::TearDown();
  }

  bool is_cpu() { return device().type() == DeviceType::kCpu; }

  // Quantised where the device keeps it so, else widened, which then changes w_.
  const void* pack(WeightOrder order) {
    const auto& [scale, n, k] = GetParam();
    if (!device().keeps_quantized(form_, k)) {
      const TypedData widened = typed_data(w_, DType::kBF16);
      w_ = widened.values;
      const WeightPart part{widened.bytes.data(), n};
      weights_.push_back(device().pack_weight({&part, 1}, k, DType::kBF16, order));
      return weights_.back();
    }
    const std::array<QuantizedPart, 2> parts = {{{form_, n / 2}, {form_, n - n / 2}}};
    const QuantizedWeight made = device().make_quantized_weight(parts, k, DType::kBF16, order);
    weights_.push_back(made.handle);
    PackRowsArgs args;
    args.weight = made.handle;
    args.n = args.num_rows = n;
    args.k = k;
    args.slice_rows = made.slice_rows;
    args.dtype = DType::kBF16;
    args.order = order;
    const int64_t row_bytes = quantized_row_bytes(form_, k);
    std::vector<std::byte> ordered;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = row_in_packing_order(i, n, made.slice_rows, order);
      ordered.insert(ordered.end(), rows_.begin() + row * row_bytes,
                     rows_.begin() + (row + 1) * row_bytes);
    }
    args.rows = to_device(ordered);
    pack_rows(queue(), args);
    drain();
    return made.handle;
  }

  const uint8_t* random_x(int rows, uint32_t seed) {
    const TypedData x = typed_data(random_floats(size_t(rows) * GetParam().k, seed), DType::kBF16);
    x_ = x.values;
    return static_cast<const uint8_t*>(upload_typed(x));
  }
  const void* round(const void* x, int rows, int max_rows) {
    const int k = GetParam().k;
    void* rounded = marked(static_cast<size_t>(rounded_rows_bytes(max_rows, k, DType::kBF16)));
    round_rows(queue(), {counts(rows), x, rounded, RowKind::kToken, 0, max_rows, k, DType::kBF16});
    return rounded;
  }
  GemmArgs args(const void* x, const void* weight, void* y, int rows, int max_rows) {
    const auto& [scale, n, k] = GetParam();
    return {counts(rows),
            round(x, rows, max_rows),
            weight,
            y,
            nullptr,
            RowKind::kToken,
            0,
            max_rows,
            n,
            k,
            DType::kBF16,
            DType::kF32};
  }
  std::vector<float> multiply(const void* x, const void* weight, int rows, int max_rows) {
    const size_t count = size_t(max_rows) * GetParam().n;
    auto* y = reinterpret_cast<float*>(marked(count * sizeof(float)));
    gemm(queue(), args(x, weight, y, rows, max_rows));
    return read(y, count);
  }

  // What x_ becomes.
  std::vector<float> rounded_x() {
    std::vector<float> rounded = x_;
    for (size_t first = 0; first < x_.size(); first += kRoundedGroup) {
      float highest = 0;
      for (size_t i = 0; i < kRoundedGroup; ++i) {
        highest = std::max(highest, std::abs(x_[first + i]));
      }
      const float scale = fp8_group_scale(highest);
      for (size_t i = first; i < first + kRoundedGroup; ++i) {
        rounded[i] = e4m3_value(e4m3_code(x_[i] / scale)) * scale;
      }
    }
    return is_cpu() ? typed_data(rounded, DType::kBF16).values : rounded;
  }

  QuantForm form_;
  std::vector<std::byte> rows_;
  std::vector<float> w_;
  std::vector<float> x_;  // of random_x
  std::vector<void*> weights_;
};

// Hopper's sums of E4M3 keep some 13 bits behind the largest of 32 terms.
TEST_P(RoundedGemm, MatchesDouble) {
  const auto& [scale, n, k] = GetParam();
  const double of_size = is_cpu() ? 2e-6 : 1e-3;
  const void* weight = pack(WeightOrder::kPlain);
  const void* x = random_x(5, 2);
  const std::vector<float> y = multiply(x, weight, 5, 6);
  const std::vector<float> rounded = rounded_x();
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < n; ++c) {
      double want = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double term = double(rounded[size_t(r) * k + i]) * w_[size_t(c) * k + i];
        want += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(y[size_t(r) * n + c], want, size * of_size) << "row " << r << " col " << c;
    }
  }
}

// The bits of a row depend on nothing but the row, whatever kernel a number of rows takes.
TEST_P(RoundedGemm, RowsAreBitEqualForEveryCount) {
  const auto& [scale, n, k] = GetParam();
  const void* weight = pack(WeightOrder::kPlain);
  const int most = is_cpu() ? 40 : 520;
  const uint8_t* x = random_x(most, 3);
  const std::vector<float> all = multiply(x, weight, most, most);
  const size_t row_bytes = size_t(n) * sizeof(float);
  for (int r = 0; r < most; r += 41 * test_thinning()) {
    const auto alone = multiply(x + size_t(r) * k * 2, weight, 1, 1);
    ASSERT_EQ(std::memcmp(alone.data(), all.data() + size_t(r) * n, row_bytes), 0) << "row " << r;
  }
  for (const int max_rows : {2, 8, 9, 16, 17, 32, 64, 128, 129, 256, 300, 512}) {
    if (max_rows > most) break;
    for (const int rows : {max_rows - 1, max_rows}) {
      const auto y = multiply(x, weight, rows, max_rows);
      ASSERT_EQ(std::memcmp(y.data(), all.data(), row_bytes * rows), 0)
          << rows << " of " << max_rows;
    }
  }
}

TEST_P(RoundedGemm, GatesItsOwnProducts) {
  const auto& [scale, n, k] = GetParam();
  const void* plain = pack(WeightOrder::kPlain);
  const void* pairs = pack(WeightOrder::kGateUp);
  const uint8_t* x = random_x(300, 4);
  for (const int rows : {1, 12, 30, 60, 200, 300}) {
    const size_t bytes = size_t(rows) * n / 2 * sizeof(uint16_t);
    float* products = allocate<float>(size_t(rows) * n);
    uint8_t* want = marked(bytes);
    uint8_t* got = marked(bytes);
    GemmArgs product = args(x, plain, products, rows, rows);
    gemm(queue(), product);
    gated_act(queue(),
              {product.counts, products, want, rows, n / 2, Activation::kSilu, DType::kBF16});
    product.weight = pairs;
    product.y = got;
    product.out_dtype = DType::kBF16;
    product.gated = 1;
    gemm(queue(), product);
    ASSERT_EQ(read(want, bytes), read(got, bytes)) << rows << " rows";
  }
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
