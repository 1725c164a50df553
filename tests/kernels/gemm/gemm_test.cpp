#include "kernels/gemm/gemm.h"

#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "kernels/gemm/gated_act.h"
#include "support/row_ops.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

struct Case {
  int n;
  int k;
  DType dtype;
};

class GemmTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  // y of x [max_rows, k] with `rows` of them live, as bytes of out_dtype, dead rows marked.
  std::vector<uint8_t> multiply(const void* x, const void* weight, int rows, int max_rows,
                                DType out = DType::kF32, const float* bias = nullptr) {
    const auto [n, k, dtype] = GetParam();
    const size_t bytes = static_cast<size_t>(max_rows) * n * dtype_size(out);
    uint8_t* y = marked(bytes);
    gemm(queue(),
         {counts(rows), x, weight, y, bias, RowKind::kToken, 0, max_rows, n, k, dtype, out});
    return read(y, bytes);
  }
};

TEST_P(GemmTest, MatchesDouble) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 1, 1 / std::sqrt(float(k))), dtype);
  const TypedData x = typed_data(random_floats(size_t(9) * k, 2), dtype);
  const std::vector<float> bias = random_floats(n, 3);
  const void* weight = pack(w.data(), n, k, dtype);
  for (const DType out : {DType::kF32, DType::kBF16}) {
    const auto y = to_floats(multiply(upload_typed(x), weight, 7, 9, out, to_device(bias)), out);
    for (int r = 0; r < 7; ++r) {
      for (int c = 0; c < n; ++c) {
        double want = bias[c];
        double size = std::abs(want);
        for (int i = 0; i < k; ++i) {
          const double term = double(x.values[r * k + i]) * w.values[size_t(c) * k + i];
          want += term;
          size += std::abs(term);
        }
        const double bound = size * 1e-6 + std::abs(want) * storage_error(out) + 1e-6;
        ASSERT_NEAR(y[size_t(r) * n + c], want, bound) << "row " << r << " col " << c;
      }
    }
  }
}

// The bits of a row may not depend on its place, on the number of rows or on max_rows.
TEST_P(GemmTest, RowsAreBitEqualForEveryCount) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 4, 0.1f), dtype);
  const void* weight = pack(w.data(), n, k, dtype);
  constexpr int kMax = 64;
  const TypedData x = typed_data(random_floats(size_t(kMax) * k, 5), dtype);
  const void* device_x = upload_typed(x);
  const size_t row_bytes = size_t(n) * sizeof(float);
  const int step = test_thinning();
  std::map<int, std::vector<uint8_t>> alone;
  for (int r = 0; r < kMax; r += step) {
    const auto* row = static_cast<const uint8_t*>(device_x) + size_t(r) * k * dtype_size(dtype);
    alone[r] = multiply(row, weight, 1, 1);
  }
  for (int rows = 0; rows <= kMax; rows += step) {
    for (const int max_rows : {std::max(rows, 1), kMax}) {
      const auto y = multiply(device_x, weight, rows, max_rows);
      for (int r = 0; r < rows; r += step) {
        ASSERT_EQ(std::memcmp(&y[r * row_bytes], alone[r].data(), row_bytes), 0)
            << "row " << r << " of " << rows << " of " << max_rows;
      }
    }
  }
}

// Live counts around every bucket and row tile up to 2048.
TEST_P(GemmTest, RowsAreBitEqualInLargeBatches) {
  const auto [n, k, dtype] = GetParam();
  // On the CPU the small shapes cover the row counts; there the large ones stop at 256 rows.
  const bool short_run =
      (int64_t{n} * k > 600000 && device().type() == DeviceType::kCpu) || test_thinning() > 1;
  const TypedData w = typed_data(random_floats(size_t(n) * k, 6, 0.1f), dtype);
  const void* weight = pack(w.data(), n, k, dtype);
  const int max_batch = short_run ? 256 : 2048;
  const void* x = upload_typed(typed_data(random_floats(size_t(max_batch) * k, 7), dtype));
  const auto all = multiply(x, weight, max_batch, max_batch);
  const size_t row_bytes = size_t(n) * sizeof(float);
  for (int r = 0; r < max_batch; r += 61 * test_thinning()) {
    const auto* row = static_cast<const uint8_t*>(x) + size_t(r) * k * dtype_size(dtype);
    const auto y = multiply(row, weight, 1, 1);
    ASSERT_EQ(std::memcmp(y.data(), all.data() + r * row_bytes, row_bytes), 0) << "row " << r;
  }
  for (const int bucket : {128, 256, 512, 1024, 2048}) {
    if (bucket > max_batch) break;
    for (const int rows : {bucket - 1, bucket, std::min(bucket + 1, max_batch)}) {
      const auto y = multiply(x, weight, rows, max_batch);
      ASSERT_EQ(std::memcmp(y.data(), all.data(), rows * row_bytes), 0) << rows << " rows";
    }
  }
}

TEST_P(GemmTest, FollowsTheLogitsRowsFromAnOffset) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 8, 0.1f), dtype);
  const void* weight = pack(w.data(), n, k, dtype);
  const void* x = upload_typed(typed_data(random_floats(size_t(4) * k, 9), dtype));
  const auto all = multiply(x, weight, 4, 4);
  const size_t bytes = size_t(4) * n * sizeof(float);
  for (const auto& [logits_rows, offset, live] :
       {std::tuple{7, 4, 3}, std::tuple{3, 4, 0}, std::tuple{20, 4, 4}}) {
    uint8_t* y = marked(bytes);
    gemm(queue(), {counts(100, logits_rows), x, weight, y, nullptr, RowKind::kLogits, offset, 4, n,
                   k, dtype, DType::kF32});
    const auto got = read(y, bytes);
    ASSERT_EQ(std::memcmp(got.data(), all.data(), size_t(live) * n * sizeof(float)), 0) << live;
  }
}

// A gated product has the bits of the product and the activation one after the other.
TEST_P(GemmTest, GatesItsOwnProducts) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w =
      typed_data(random_floats(size_t(2) * n * k, 11, 2 / std::sqrt(float(k))), dtype);
  const void* plain = pack(w.data(), 2 * n, k, dtype);
  const void* pairs = pack(w.data(), 2 * n, k, dtype, WeightOrder::kGateUp);
  const void* x = upload_typed(typed_data(random_floats(size_t(70) * k, 12), dtype));
  const float* bias = to_device(random_floats(size_t(2) * n, 13));
  float* products = allocate<float>(size_t(70) * 2 * n);
  for (const auto activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
    for (const auto& [rows, max_rows] : {std::pair{1, 1}, std::pair{6, 8}, std::pair{13, 16},
                                         std::pair{50, 64}, std::pair{70, 70}}) {
      const float* add = rows == 6 || rows == 50 ? bias : nullptr;
      const size_t bytes = size_t(max_rows) * n * dtype_size(dtype);
      uint8_t* want = marked(bytes);
      uint8_t* got = marked(bytes);
      const StepCounts* live = counts(rows);
      GemmArgs args{live, x,        plain, products, add,   RowKind::kToken,
                    0,    max_rows, 2 * n, k,        dtype, DType::kF32};
      gemm(queue(), args);
      gated_act(queue(), {live, products, want, max_rows, n, activation, dtype});
      args.weight = pairs;
      args.y = got;
      args.out_dtype = dtype;
      args.gated = 1;
      args.activation = activation;
      gemm(queue(), args);
      const size_t live_bytes = size_t(rows) * n * dtype_size(dtype);
      const auto a = read(want, bytes), b = read(got, bytes);
      ASSERT_EQ(std::memcmp(a.data(), b.data(), live_bytes), 0) << rows;
    }
  }
}

TEST_P(GemmTest, AddsToY) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 14, 0.1f), dtype);
  const void* weight = pack(w.data(), n, k, dtype);
  const void* x = upload_typed(typed_data(random_floats(size_t(70) * k, 15), dtype));
  const float* bias = to_device(random_floats(n, 16));
  const std::vector<float> before = random_floats(size_t(70) * n, 17);
  for (const int rows : {1, 6, 70}) {
    const auto sums = to_floats(multiply(x, weight, rows, 70, DType::kF32, bias), DType::kF32);
    float* y = to_device(before);
    GemmArgs args{counts(rows), x, weight, y,     bias,       RowKind::kToken, 0,
                  70,           n, k,      dtype, DType::kF32};
    args.add = 1;
    gemm(queue(), args);
    const std::vector<float> got = read(y, before.size());
    for (size_t i = 0; i < size_t(rows) * n; ++i) ASSERT_EQ(got[i], before[i] + sums[i]) << i;
    for (size_t i = size_t(rows) * n; i < got.size(); ++i) ASSERT_EQ(got[i], before[i]) << i;
  }
}

// Matrices so wide that a block stores its sums together.
class WideGemmTest : public GemmTest {};

TEST_P(WideGemmTest, RowsAreBitEqualAloneAndBesideOthers) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 18, 0.1f), dtype);
  const void* weight = pack(w.data(), n, k, dtype);
  const TypedData x = typed_data(random_floats(size_t(64) * k, 19), dtype);
  const auto* device_x = static_cast<const uint8_t*>(upload_typed(x));
  const float* bias = to_device(random_floats(n, 20));
  const size_t row_bytes = size_t(n) * sizeof(float);
  for (const int rows : {33, 50, 64}) {
    const auto together = multiply(device_x, weight, rows, 64, DType::kF32, bias);
    for (const int r : {0, 15, 16, 32, rows - 1}) {
      const auto* row = device_x + size_t(r) * k * dtype_size(dtype);
      const auto alone = multiply(row, weight, 1, 1, DType::kF32, bias);
      ASSERT_EQ(std::memcmp(alone.data(), &together[r * row_bytes], row_bytes), 0)
          << "row " << r << " of " << rows;
    }
  }
}

// So many rows that a GPU stores its largest tiles through shared memory. Some rows of x are zeros
// and what is added to holds numbers below the normal ones, which every count of rows must treat
// alike.
class ManyRowsGemmTest : public GemmTest {
 protected:
  static constexpr int kMaxRows = 1100, kRows = 1001;

  struct Product {
    const uint8_t* x;
    const void* weight;
    const float* bias;
    bool gated;
  };

  static TypedData rows_of_x(int k, DType dtype) {
    std::vector<float> x = random_floats(size_t(kMaxRows) * k, 21);
    for (int r = 0; r < kMaxRows; r += 7) std::fill_n(x.begin() + size_t(r) * k, k, 0.0f);
    return typed_data(x, dtype);
  }

  // Rows from `first` on of the product, added to those of `before`, or gated.
  std::vector<uint8_t> run(const Product& p, const std::vector<float>& before, int first, int live,
                           int max_rows) {
    const auto [n, k, dtype] = GetParam();
    const size_t columns = p.gated ? size_t(n) / 2 : size_t(n);
    float* sums = nullptr;
    uint8_t* gates = nullptr;
    const size_t bytes = size_t(max_rows) * columns * (p.gated ? dtype_size(dtype) : sizeof(float));
    if (p.gated) {
      gates = marked(bytes);
    } else {
      const auto from = before.begin() + std::ptrdiff_t(first * columns);
      sums = to_device(std::vector<float>(from, from + std::ptrdiff_t(max_rows * columns)));
    }
    GemmArgs args{counts(live),
                  p.x + size_t(first) * k * dtype_size(dtype),
                  p.weight,
                  p.gated ? static_cast<void*>(gates) : sums,
                  p.bias,
                  RowKind::kToken,
                  0,
                  max_rows,
                  n,
                  k,
                  dtype,
                  p.gated ? dtype : DType::kF32};
    args.add = p.gated ? 0 : 1;
    args.gated = p.gated ? 1 : 0;
    gemm(queue(), args);
    return read(p.gated ? gates : reinterpret_cast<uint8_t*>(sums), bytes);
  }

  void expect_rows_alone(const Product& p, const std::vector<float>& before) {
    const auto together = run(p, before, 0, kRows, kMaxRows);
    const size_t row_bytes = together.size() / kMaxRows;
    for (const int r : {0, 7, 15, 16, 63, 64, 129, 500, 895, 896, 999, kRows - 1}) {
      const auto alone = run(p, before, r, 1, 1);
      ASSERT_EQ(std::memcmp(alone.data(), &together[r * row_bytes], row_bytes), 0) << "row " << r;
    }
    if (p.gated) return;
    const auto* start = reinterpret_cast<const uint8_t*>(before.data());
    for (size_t i = kRows * row_bytes; i < together.size(); ++i) ASSERT_EQ(together[i], start[i]);
  }
};

TEST_P(ManyRowsGemmTest, RowsAreAddedAndGatedAsAlone) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 22, 0.1f), dtype);
  const void* plain = pack(w.data(), n, k, dtype);
  const void* pairs = pack(w.data(), n, k, dtype, WeightOrder::kGateUp);
  const auto* x = static_cast<const uint8_t*>(upload_typed(rows_of_x(k, dtype)));
  const float* bias = to_device(random_floats(n, 23));
  std::vector<float> before = random_floats(size_t(kMaxRows) * n, 24);
  for (size_t i = 0; i < before.size(); i += 5) before[i] = i % 2 == 0 ? 1.3e-38f : -0.0f;
  for (size_t i = 2; i < size_t(kRows) * n; i += 5) before[i] = 3e-39f;
  for (const float* added : {static_cast<const float*>(nullptr), bias}) {
    expect_rows_alone({x, plain, added, false}, before);
    expect_rows_alone({x, pairs, added, true}, before);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ManyRowsGemmTest,
                         testing::Values(Case{4096, 64, DType::kBF16}, Case{1544, 72, DType::kBF16},
                                         Case{1540, 200, DType::kBF16}));

INSTANTIATE_TEST_SUITE_P(Shapes, WideGemmTest,
                         testing::Values(Case{17000, 72, DType::kBF16},
                                         Case{20012, 136, DType::kBF16}));

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest,
                         testing::Values(Case{64, 192, DType::kF32}, Case{576, 192, DType::kF32},
                                         Case{7, 24, DType::kF32}, Case{1000, 512, DType::kF32},
                                         Case{1536, 1024, DType::kF32}, Case{64, 192, DType::kBF16},
                                         Case{576, 192, DType::kBF16}, Case{33, 100, DType::kBF16},
                                         Case{1000, 512, DType::kBF16},
                                         Case{3072, 1024, DType::kBF16},
                                         Case{200, 1600, DType::kBF16},
                                         Case{64, 7168, DType::kBF16},    // a router
                                         Case{2112, 1536, DType::kBF16},  // latent attention
                                         // The bundled model's matrices.
                                         Case{512, 256, DType::kBF16}, Case{256, 256, DType::kBF16},
                                         Case{768, 256, DType::kBF16}, Case{256, 384, DType::kBF16},
                                         Case{2048, 256, DType::kBF16}, Case{512, 256, DType::kF32},
                                         Case{256, 384, DType::kF32}, Case{2048, 256, DType::kF32}),
                         [](const auto& test) {
                           return std::string(dtype_name(test.param.dtype)) + "_n" +
                                  std::to_string(test.param.n) + "_k" +
                                  std::to_string(test.param.k);
                         });

}  // namespace
}  // namespace foretoken
