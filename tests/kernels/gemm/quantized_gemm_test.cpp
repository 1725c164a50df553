#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/gemm/gated_act.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/gemm/pack_rows.h"
#include "support/quant_data.h"
#include "support/row_ops.h"
#include "support/thinning.h"

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
  return all;
}

// Products with weights that stay quantised, of the forms that the device keeps.
class QuantizedGemm : public RowOpTest, public testing::WithParamInterface<QuantizedGemmCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto& [form, n, k] = GetParam();
    if (!device().keeps_quantized(form, k)) GTEST_SKIP() << "the device does not keep this form";
    // What the CPU does with all shapes and rows, packed_weight_test.cpp sees.
    if (is_cpu() && n > 1000) GTEST_SKIP() << "this shape is for GPUs";
    rows_ = random_quantized_rows(form, n, k, 1);
  }
  void TearDown() override {
    if (!weights_.empty()) drain();
    for (void* weight : weights_) device().free_weight(weight);
    RowOpTest::TearDown();
  }

  bool is_cpu() { return device().type() == DeviceType::kCpu; }

  // The rows, packed in two pieces.
  const void* pack_quantized(WeightOrder order) {
    const auto& [form, n, k] = GetParam();
    const std::array<QuantizedPart, 2> parts = {{{form, n / 2}, {form, n - n / 2}}};
    const QuantizedWeight made = device().make_quantized_weight(parts, k, DType::kBF16, order);
    weights_.push_back(made.handle);
    PackRowsArgs pack;
    pack.weight = made.handle;
    pack.n = n;
    pack.k = k;
    pack.slice_rows = made.slice_rows;
    pack.dtype = DType::kBF16;
    pack.order = order;
    const int64_t row_bytes = quantized_row_bytes(form, k);
    const int64_t half = n / 2 / made.slice_rows * made.slice_rows;
    for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, half}, {half, n}}) {
      if (first == end) continue;
      std::vector<std::byte> ordered;
      for (int64_t i = first; i < end; ++i) {
        const int64_t row = row_in_packing_order(i, n, made.slice_rows, order);
        ordered.insert(ordered.end(), rows_.begin() + row * row_bytes,
                       rows_.begin() + (row + 1) * row_bytes);
      }
      pack.rows = to_device(ordered);
      pack.first_row = first;
      pack.num_rows = end - first;
      pack_rows(queue(), pack);
      drain();
    }
    return made.handle;
  }

  const void* random_x(int rows, uint32_t seed) {
    const TypedData x = typed_data(random_floats(size_t(rows) * GetParam().k, seed), DType::kBF16);
    x_ = x.values;
    return upload_typed(x);
  }

  GemmArgs args(const void* x, const void* weight, void* y, int rows, int max_rows) {
    const auto& [form, n, k] = GetParam();
    return {counts(rows), x,          weight, y, nullptr, RowKind::kToken, 0, max_rows, n, k,
            DType::kBF16, DType::kF32};
  }
  std::vector<float> multiply(const void* x, const void* weight, int rows, int max_rows) {
    const size_t count = size_t(max_rows) * GetParam().n;
    auto* y = reinterpret_cast<float*>(marked(count * sizeof(float)));
    gemm(queue(), args(x, weight, y, rows, max_rows));
    return read(y, count);
  }

  std::vector<std::byte> rows_;
  std::vector<float> x_;  // of random_x
  std::vector<void*> weights_;
};

// Of GGUF's blocks, whose values a GPU rounds to bfloat16.
bool is_rounded(const QuantForm& form) {
  const bool has_minima_or_super = form.scale == GroupScale::kSuper ||
                                   form.scale == GroupScale::kSuperSigned ||
                                   form.scale == GroupScale::kHalfAndMinimum;
  return has_minima_or_super || form.table == CodeTable::kIq4 || form.bits == 5;
}

// The CPU rounds x to eight bits; a GPU widens codes without loss, or to the nearest bfloat16, and
// adds in float.
TEST_P(QuantizedGemm, MatchesDouble) {
  const auto& [form, n, k] = GetParam();
  const double of_x = is_cpu() ? 8e-3 : 2e-6;
  std::vector<float> w = dequantized(form, rows_, k);
  if (!is_cpu() && is_rounded(form)) w = typed_data(std::move(w), DType::kBF16).values;
  const void* weight = pack_quantized(WeightOrder::kPlain);
  const void* x = random_x(5, 2);
  const std::vector<float> y = multiply(x, weight, 5, 6);
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < n; ++c) {
      double want = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double term = double(x_[size_t(r) * k + i]) * w[size_t(c) * k + i];
        want += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(y[size_t(r) * n + c], want, size * of_x) << "row " << r << " col " << c;
    }
  }
}

// The bits of a row depend on nothing but the row, whatever kernel a number of rows takes.
TEST_P(QuantizedGemm, RowsAreBitEqualForEveryCount) {
  const auto& [form, n, k] = GetParam();
  const void* weight = pack_quantized(WeightOrder::kPlain);
  const int most = is_cpu() ? 40 : 520;
  const void* x = random_x(most, 3);
  const std::vector<float> all = multiply(x, weight, most, most);
  const size_t row_bytes = size_t(n) * sizeof(float);
  for (int r = 0; r < most; r += 41 * test_thinning()) {
    const auto alone = multiply(static_cast<const uint8_t*>(x) + size_t(r) * k * 2, weight, 1, 1);
    ASSERT_EQ(std::memcmp(alone.data(), all.data() + size_t(r) * n, row_bytes), 0) << "row " << r;
  }
  for (const int max_rows : {2, 8, 9, 16, 17, 32, 64, 128, 129, 512}) {
    if (max_rows > most) break;
    for (const int rows : {max_rows - 1, max_rows}) {
      const auto y = multiply(x, weight, rows, max_rows);
      ASSERT_EQ(std::memcmp(y.data(), all.data(), row_bytes * rows), 0)
          << rows << " of " << max_rows;
    }
  }
}

TEST_P(QuantizedGemm, GatesItsOwnProducts) {
  const auto& [form, n, k] = GetParam();
  const void* plain = pack_quantized(WeightOrder::kPlain);
  const void* pairs = pack_quantized(WeightOrder::kGateUp);
  const void* x = random_x(200, 4);
  for (const int rows : {1, 12, 30, 60, 200}) {
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
         (form.powers ? "p" : "") + "_n" + std::to_string(test.param.n);
}

INSTANTIATE_TEST_SUITE_P(Forms, QuantizedGemm, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace foretoken
