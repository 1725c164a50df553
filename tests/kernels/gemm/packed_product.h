#pragma once
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "kernels/gemm/gated_act.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack_rows.h"
#include "support/quant_data.h"
#include "support/row_ops.h"
#include "support/thinning.h"

namespace foretoken {

// Base of the tests of products of bfloat16 rows with quantised weights [n, k].
class PackedProductTest : public RowOpTest {
 protected:
  void TearDown() override {
    if (!weights_.empty()) drain();
    for (void* weight : weights_) device().free_weight(weight);
    RowOpTest::TearDown();
  }

  bool is_cpu() { return device().type() == DeviceType::kCpu; }

  // `rows` of a form, which the device keeps, as one weight, packed in two pieces or at once.
  const void* pack_form(const QuantForm& form, const std::vector<std::byte>& rows,
                        WeightOrder order, bool in_pieces) {
    const std::array<QuantizedPart, 2> parts = {{{form, n_ / 2}, {form, n_ - n_ / 2}}};
    const QuantizedWeight made = device().make_quantized_weight(parts, k_, DType::kBF16, order);
    weights_.push_back(made.handle);
    PackRowsArgs pack;
    pack.weight = made.handle;
    pack.n = n_;
    pack.k = k_;
    pack.slice_rows = made.slice_rows;
    pack.dtype = DType::kBF16;
    pack.order = order;
    const int64_t row_bytes = quantized_row_bytes(form, k_);
    const int64_t half = in_pieces ? n_ / 2 / made.slice_rows * made.slice_rows : 0;
    for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, half}, {half, n_}}) {
      if (first == end) continue;
      std::vector<std::byte> ordered;
      for (int64_t i = first; i < end; ++i) {
        const int64_t row = row_in_packing_order(i, n_, made.slice_rows, order);
        ordered.insert(ordered.end(), rows.begin() + row * row_bytes,
                       rows.begin() + (row + 1) * row_bytes);
      }
      pack.rows = to_device(ordered);
      pack.first_row = first;
      pack.num_rows = end - first;
      pack_rows(queue(), pack);
      drain();
    }
    return made.handle;
  }

  const uint8_t* random_x(int rows, uint32_t seed) {
    const TypedData x = typed_data(random_floats(size_t(rows) * k_, seed), DType::kBF16);
    x_ = x.values;
    return static_cast<const uint8_t*>(upload_typed(x));
  }

  // What the product takes for `x`.
  virtual const void* input_of(const void* x, int /*rows*/, int /*max_rows*/) { return x; }

  GemmArgs args(const void* x, const void* weight, void* y, int rows, int max_rows) {
    return {counts(rows),
            input_of(x, rows, max_rows),
            weight,
            y,
            nullptr,
            RowKind::kToken,
            0,
            max_rows,
            n_,
            k_,
            DType::kBF16,
            DType::kF32};
  }
  std::vector<float> multiply(const void* x, const void* weight, int rows, int max_rows) {
    const size_t count = size_t(max_rows) * n_;
    auto* y = reinterpret_cast<float*>(marked(count * sizeof(float)));
    gemm(queue(), args(x, weight, y, rows, max_rows));
    return read(y, count);
  }

  // Products of five rows `x` with `w`, next to sums in double; `of_size` of the sum of magnitudes.
  void expect_near_double(const std::vector<float>& y, const std::vector<float>& x,
                          const std::vector<float>& w, double of_size) {
    for (int r = 0; r < 5; ++r) {
      for (int c = 0; c < n_; ++c) {
        double want = 0, size = 0;
        for (int i = 0; i < k_; ++i) {
          const double term = double(x[size_t(r) * k_ + i]) * w[size_t(c) * k_ + i];
          want += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(y[size_t(r) * n_ + c], want, size * of_size) << "row " << r << " col " << c;
      }
    }
  }

  // The bits of a row alone, among others, and in steps of each of these sizes.
  void expect_rows_bit_equal(const void* weight, std::initializer_list<int> sizes) {
    const int most = is_cpu() ? 40 : 520;
    const uint8_t* x = random_x(most, 3);
    const std::vector<float> all = multiply(x, weight, most, most);
    const size_t row_bytes = size_t(n_) * sizeof(float);
    for (int r = 0; r < most; r += 41 * test_thinning()) {
      const auto alone = multiply(x + size_t(r) * k_ * 2, weight, 1, 1);
      ASSERT_EQ(std::memcmp(alone.data(), all.data() + size_t(r) * n_, row_bytes), 0)
          << "row " << r;
    }
    for (const int max_rows : sizes) {
      if (max_rows > most) break;
      for (const int rows : {max_rows - 1, max_rows}) {
        const auto y = multiply(x, weight, rows, max_rows);
        ASSERT_EQ(std::memcmp(y.data(), all.data(), row_bytes * rows), 0)
            << rows << " of " << max_rows;
      }
    }
  }

  // A product that gates itself (`pairs`) has the bits of one (`plain`) and gated_act behind it.
  void expect_gated_as_apart(const void* plain, const void* pairs, const void* x,
                             std::initializer_list<int> sizes) {
    for (const int rows : sizes) {
      const size_t bytes = size_t(rows) * n_ / 2 * sizeof(uint16_t);
      float* products = allocate<float>(size_t(rows) * n_);
      uint8_t* want = marked(bytes);
      uint8_t* got = marked(bytes);
      GemmArgs product = args(x, plain, products, rows, rows);
      gemm(queue(), product);
      gated_act(queue(),
                {product.counts, products, want, rows, n_ / 2, Activation::kSilu, DType::kBF16});
      product.weight = pairs;
      product.y = got;
      product.out_dtype = DType::kBF16;
      product.gated = 1;
      gemm(queue(), product);
      ASSERT_EQ(read(want, bytes), read(got, bytes)) << rows << " rows";
    }
  }

  int n_ = 0;  // of the test's weight
  int k_ = 0;
  std::vector<float> x_;  // of random_x
  std::vector<void*> weights_;
};

}  // namespace foretoken
