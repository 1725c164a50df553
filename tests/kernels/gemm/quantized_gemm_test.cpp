#include <algorithm>
#include <cstring>
#include <utility>

#include "base/half.h"
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

// Integers with a scale for each group, of which a GPU takes the nearest bfloat16, and of minima.
bool rounds_scales(const QuantForm& form) {
  switch (form.scale) {
    case GroupScale::kHalf:
      return form.table != CodeTable::kE2m1;
    case GroupScale::kHalfAndZero:
    case GroupScale::kHalfAndMinimum:
    case GroupScale::kSuper:
    case GroupScale::kSuperSigned:
      return true;
    default:
      return false;
  }
}

struct FormedRows {
  QuantForm form;
  std::vector<std::byte> rows;
};

uint16_t rounded_half(float value) {
  return half_from_float(typed_data({value}, DType::kBF16).values.front());
}

// The rows with such scales and minima, which are halves of each group.
FormedRows with_rounded_scales(const QuantForm& form, const std::vector<std::byte>& rows,
                               int64_t k) {
  const bool is_super = form.scale == GroupScale::kSuper || form.scale == GroupScale::kSuperSigned;
  FormedRows made{form, {}};
  if (form.scale == GroupScale::kSuper) made.form.scale = GroupScale::kHalfAndMinimum;
  if (form.scale == GroupScale::kSuperSigned) made.form.scale = GroupScale::kHalf;
  const auto row_bytes = size_t(quantized_row_bytes(form, k));
  const int64_t halves = quantized_row_halves(made.form, k), groups = k / form.group;
  const int64_t supers = k / kSuperGroup;
  for (const std::byte* row = rows.data(); row != rows.data() + rows.size(); row += row_bytes) {
    const std::byte* behind = row + k;
    const auto half_at = [&](int64_t i) {
      uint16_t half = 0;
      std::memcpy(&half, behind + i * 2, sizeof half);
      return half_to_float(half);
    };
    const std::byte* bytes = behind + quantized_row_halves(form, k) * 2;
    made.rows.insert(made.rows.end(), row, behind);
    for (int64_t i = 0; i < halves; ++i) {
      float value = is_super ? half_at(i / groups * supers + i % groups * form.group / kSuperGroup)
                             : half_at(i);
      const auto byte = is_super ? static_cast<uint8_t>(bytes[i]) : uint8_t{1};
      value *= form.scale == GroupScale::kSuperSigned
                   ? static_cast<float>(static_cast<int8_t>(byte))
                   : static_cast<float>(byte);
      const uint16_t half = rounded_half(value);
      const auto* of_half = reinterpret_cast<const std::byte*>(&half);
      made.rows.insert(made.rows.end(), of_half, of_half + sizeof half);
    }
    if (form.scale == GroupScale::kHalfAndZero) {
      made.rows.insert(made.rows.end(), bytes, row + row_bytes);
    }
  }
  return made;
}

// The CPU rounds x to eight bits; a GPU widens codes without loss, or to the bfloat16 nearest to
// what rounded scales make of them, and adds in float.
TEST_P(QuantizedGemm, MatchesDouble) {
  const QuantForm& form = GetParam().form;
  std::vector<float> w;
  if (!is_cpu() && rounds_scales(form)) {
    const FormedRows own = with_rounded_scales(form, rows_, k_);
    w = typed_data(dequantized(own.form, own.rows, k_), DType::kBF16).values;
  } else {
    w = dequantized(form, rows_, k_);
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
