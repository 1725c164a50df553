#include "kernels/gemm/cpu/bf16_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/bfloat16.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

constexpr int kMaxRows = 64;
constexpr int kStride = 80;  // of y
constexpr float kUntouched = 12345.0f;

struct Data {
  int cols;
  int k;
  std::vector<float> w, x;
  std::vector<uint16_t> packed, rows;
};

Data make_data(int cols, int k) {
  const auto random = [](size_t count, uint64_t seed) {
    std::vector<float> values = random_floats(count, seed);
    for (float& value : values) value = bf16_to_float(bf16_from_float(value));
    return values;
  };
  Data data{cols, k, random(size_t(cols) * k, 1), random(size_t(kMaxRows) * k, 2), {}, {}};
  const int tiles = (cols + kBf16Lanes - 1) / kBf16Lanes;
  data.packed.resize(size_t(tiles) * kBf16Lanes * k);
  for (int col = 0; col < cols; ++col) {
    for (int i = 0; i < k; ++i) {
      const int tile = i / kBf16Step * tiles + col / kBf16Lanes;
      const int place = i % kBf16Step / 2 * 2 * kBf16Lanes + col % kBf16Lanes * 2 + i % 2;
      data.packed[size_t(tile) * 512 + place] = bf16_from_float(data.w[size_t(col) * k + i]);
    }
  }
  for (const float value : data.x) data.rows.push_back(bf16_from_float(value));
  return data;
}

std::vector<float> multiply(const Bf16Kernels& kernels, const Data& data, int first, int rows) {
  std::vector<float> y(size_t(kMaxRows + 1) * kStride, kUntouched);
  kernels.multiply({data.packed.data(), data.cols, data.k / kBf16Step},
                   {data.rows.data() + size_t(first) * data.k, data.k, y.data(), kStride, rows});
  return y;
}

// Bits of a row depend neither on the number of rows nor on its place, and nothing else is written.
TEST(Bf16Kernels, RowsAreBitEqualForEveryCount) {
  for (const Bf16Kernels& kernels : bf16_kernels()) {
    for (const auto& [cols, k] : {std::pair{64, 512}, std::pair{1, 32}, std::pair{17, 96},
                                  std::pair{33, 288}, std::pair{50, 2048}}) {
      SCOPED_TRACE(std::string(kernels.name) + " cols " + std::to_string(cols));
      const Data data = make_data(cols, k);
      const std::vector<float> all = multiply(kernels, data, 0, kMaxRows);
      for (int rows = 1; rows <= kMaxRows; ++rows) {
        for (const int first : {0, kMaxRows - rows}) {
          const std::vector<float> y = multiply(kernels, data, first, rows);
          for (int r = 0; r <= kMaxRows; ++r) {
            const bool live = r < rows;
            const size_t at = size_t(r) * kStride;
            if (live) {
              const float* want = all.data() + size_t(first + r) * kStride;
              ASSERT_EQ(std::memcmp(y.data() + at, want, size_t(cols) * 4), 0) << rows << " " << r;
            }
            for (int c = live ? cols : 0; c < kStride; ++c) ASSERT_EQ(y[at + c], kUntouched);
          }
        }
      }
    }
  }
}

TEST(Bf16Kernels, MatchDouble) {
  for (const Bf16Kernels& kernels : bf16_kernels()) {
    const Data data = make_data(50, 1024);
    const std::vector<float> y = multiply(kernels, data, 0, kMaxRows);
    for (int r = 0; r < kMaxRows; ++r) {
      for (int c = 0; c < data.cols; ++c) {
        double want = 0, size = 0;
        for (int i = 0; i < data.k; ++i) {
          const double term =
              double(data.x[size_t(r) * data.k + i]) * data.w[size_t(c) * data.k + i];
          want += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(y[size_t(r) * kStride + c], want, size * 1e-6) << kernels.name;
      }
    }
  }
}

// Both widen the weights and add the neighbours of k one after the other.
TEST(Bf16Kernels, FloatKernelsAgreeBitForBit) {
  const Data data = make_data(50, 1024);
  std::vector<std::vector<float>> all;
  for (const Bf16Kernels& kernels : bf16_kernels()) {
    const std::string name = kernels.name;
    if (name == "avx512" || name == "avx2") all.push_back(multiply(kernels, data, 0, kMaxRows));
  }
  if (all.size() < 2) GTEST_SKIP() << "no AVX-512";
  EXPECT_EQ(all[0], all[1]);
}

}  // namespace
}  // namespace foretoken::cpu
