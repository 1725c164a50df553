#include <algorithm>
#include <utility>

#include "kernels/gemm/head_argmax.h"
#include "kernels/gemm/packed_product.h"

namespace foretoken {
namespace {

struct QuantizedGemmCase {
  QuantForm form;
  int n;
  int k;
};

std::vector<QuantizedGemmCase> cases() {
  std::vector<QuantizedGemmCase> all;
  for (const auto* forms : {&quant_forms(), &more_quant_forms()}) {
    for (const QuantForm& form : *forms) {
      all.push_back({form, 200, 512});
      all.push_back({form, 1544, 1280});
      all.push_back({form, 8712, 256});  // more rows than 132 multiprocessors have 64 of
    }
  }
  // Four parts of k, whose blocks meet; so many rows that blocks of 256 fill 132 multiprocessors;
  // and several parts of k in the same block, of 128 rows and of 256.
  constexpr QuantForm kE4m3{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3};
  for (const QuantForm& form :
       {QuantForm{4, GroupScale::kHalf, 32}, QuantForm{4, GroupScale::kHalfAndZero, 128}, kE4m3}) {
    all.push_back({form, 520, 5120});
    all.push_back({form, 28680, 256});
    all.push_back({form, 8712, 1280});
  }
  all.push_back({kE4m3, 28680, 1280});
  all.push_back({kE4m3, 8712, 5120});
  return all;
}

// Products with weights that stay quantised, of the forms that the device keeps.
class QuantizedGemm : public PackedProductTest,
                      public testing::WithParamInterface<QuantizedGemmCase> {
 protected:
  void SetUp() override {
    PackedProductTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    n_ = GetParam().n;
    k_ = GetParam().k;
    const QuantForm& form = GetParam().form;
    if (!device().keeps_quantized(form, k_)) GTEST_SKIP() << "the device does not keep this form";
    // What the CPU does with all shapes and rows, packed_weight_test.cpp sees.
    if (is_cpu() && n_ > 1000) GTEST_SKIP() << "this shape is for GPUs";
    rows_ = random_quantized_rows(form, n_, k_, 1);
  }

  const void* pack_quantized(WeightOrder order) {
    return pack_form(GetParam().form, rows_, order, true);
  }

  std::vector<std::byte> rows_;
};

// Of GGUF's blocks, whose values a GPU rounds to bfloat16.
bool is_rounded(const QuantForm& form) {
  const bool has_minima_or_super = form.scale == GroupScale::kSuper ||
                                   form.scale == GroupScale::kSuperSigned ||
                                   form.scale == GroupScale::kHalfAndMinimum;
  return has_minima_or_super || form.table == CodeTable::kIq4 || form.bits == 5;
}

// Integers with a half for each group, of which a GPU takes the nearest bfloat16.
bool rounds_scales(const QuantForm& form) {
  const bool of_halves = form.scale == GroupScale::kHalf || form.scale == GroupScale::kHalfAndZero;
  return form.bits != 5 && form.table == CodeTable::kNone && of_halves;
}

// The rows with such scales, which are halves still.
std::vector<std::byte> with_rounded_scales(const QuantForm& form, std::vector<std::byte> rows,
                                           int64_t k) {
  const auto row_bytes = size_t(quantized_row_bytes(form, k));
  const auto halves = size_t(quantized_row_halves(form, k));
  for (size_t row = 0; row < rows.size() / row_bytes; ++row) {
    for (size_t i = 0; i < halves; ++i) {
      std::byte* at = rows.data() + row * row_bytes + size_t(k) + i * 2;
      uint16_t half = 0;
      std::memcpy(&half, at, sizeof half);
      half = static_cast<uint16_t>((half + 3 + (half >> 3 & 1)) & 0xfff8);
      std::memcpy(at, &half, sizeof half);
    }
  }
  return rows;
}

// The CPU rounds x to eight bits; a GPU widens codes without loss, or to the nearest bfloat16, and
// adds in float.
TEST_P(QuantizedGemm, MatchesDouble) {
  const QuantForm& form = GetParam().form;
  const bool rounds = !is_cpu() && rounds_scales(form);
  std::vector<float> w =
      dequantized(form, rounds ? with_rounded_scales(form, rows_, k_) : rows_, k_);
  if (!is_cpu() && (rounds || is_rounded(form))) {
    w = typed_data(std::move(w), DType::kBF16).values;
  }
  const void* weight = pack_quantized(WeightOrder::kPlain);
  const void* x = random_x(5, 2);
  expect_near_double(multiply(x, weight, 5, 6), x_, w, is_cpu() ? 8e-3 : 2e-6);
}

// Whatever a device rounds on the way, products are near those with what the file has.
TEST_P(QuantizedGemm, IsNearTheFilesNumbers) {
  if (n_ > 2000) GTEST_SKIP() << "a shape of more blocks, not of other places";
  const void* weight = pack_quantized(WeightOrder::kPlain);
  const void* x = random_x(20, 8);
  const std::vector<float> w = dequantized(GetParam().form, rows_, k_);
  for (const int rows : {5, 20}) expect_near_double(multiply(x, weight, rows, rows), x_, w, 8e-3);
}

// The bits of a row depend on nothing but the row, whatever kernel a number of rows takes.
TEST_P(QuantizedGemm, RowsAreBitEqualForEveryCount) {
  expect_rows_bit_equal(pack_quantized(WeightOrder::kPlain),
                        {2, 8, 9, 16, 17, 32, 64, 128, 129, 512});
}

// Nothing is stored, and what was on its way when the kernel ended spoils no later product.
TEST_P(QuantizedGemm, NoLiveRowsLeaveTheOutputAlone) {
  const void* weight = pack_quantized(WeightOrder::kPlain);
  for (const int max_rows : {1, 16, 32, 64, 130}) {
    const void* x = random_x(max_rows, 7);
    const std::vector<float> before = multiply(x, weight, max_rows, max_rows);
    const std::vector<float> none = multiply(x, weight, 0, max_rows);
    std::vector<uint8_t> bytes(none.size() * sizeof(float));
    std::memcpy(bytes.data(), none.data(), bytes.size());
    expect_marked(bytes, 0);
    ASSERT_EQ(multiply(x, weight, max_rows, max_rows), before) << max_rows;
  }
}

TEST_P(QuantizedGemm, GatesItsOwnProducts) {
  const void* plain = pack_quantized(WeightOrder::kPlain);
  const void* pairs = pack_quantized(WeightOrder::kGateUp);
  expect_gated_as_apart(plain, pairs, random_x(200, 4), {1, 12, 30, 60, 200});
}

TEST_P(QuantizedGemm, FindsTheBestProduct) {
  const auto& [form, n, k] = GetParam();
  const void* weight = pack_quantized(WeightOrder::kPlain);
  const void* x = random_x(80, 5);
  for (const int rows : {1, 40, 80}) {
    const std::vector<float> products = multiply(x, weight, rows, rows);
    auto* ids = allocate<int32_t>(size_t(rows));
    HeadArgmaxArgs best{};
    best.counts = counts(rows, rows);
    best.x = x;
    best.weight = weight;
    best.ids = ids;
    best.max_rows = rows;
    best.n = n;
    best.k = k;
    best.dtype = DType::kBF16;
    best.workspace = marked(size_t(head_argmax_bytes(rows, n)));
    head_argmax(queue(), best);
    const std::vector<int32_t> got = read(ids, size_t(rows));
    for (int r = 0; r < rows; ++r) {
      const auto* row = products.data() + size_t(r) * n;
      EXPECT_EQ(got[size_t(r)], std::max_element(row, row + n) - row) << "row " << r;
    }
  }
}

std::string name_of(const testing::TestParamInfo<QuantizedGemmCase>& test) {
  const QuantForm& form = test.param.form;
  return "b" + std::to_string(form.bits) + "_s" + std::to_string(int(form.scale)) + "_g" +
         std::to_string(form.group) + "_t" + std::to_string(int(form.table)) +
         (form.powers ? "p" : "") + "_n" + std::to_string(test.param.n) + "_k" +
         std::to_string(test.param.k);
}

INSTANTIATE_TEST_SUITE_P(Forms, QuantizedGemm, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace foretoken
