#include "kernels/gemm/cpu/bf16_matrix.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/bfloat16.h"

namespace foretoken::cpu {
namespace {

TEST(Bf16Matrix, TakesWholeStepsOnly) {
  EXPECT_FALSE(has_bf16_products(100));
  EXPECT_EQ(has_bf16_products(96), !bf16_kernels().empty());
}

// A weight of powers of two, each column another one in another place of k, so that products are
// exact and every element that is out of place shows.
TEST(Bf16Matrix, EveryElementHasItsPlace) {
  constexpr int kK = 96, kRows = 3;
  const std::vector<int> widths = {200, 64, 1, 40};
  if (!has_bf16_products(kK)) GTEST_SKIP() << "no AVX2";
  Bf16Matrix matrix(widths, kK);
  std::vector<uint16_t> x;
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kK; ++i) x.push_back(bf16_from_float(static_cast<float>(i + r)));
  }
  for (int slice = 0; slice < std::ssize(widths); ++slice) {
    const int cols = widths[static_cast<size_t>(slice)];
    const auto place = [&](int col) { return (7 * col + 5 * slice) % kK; };
    const auto value = [](int col) { return static_cast<float>(1 << col % 5); };
    std::vector<uint16_t> rows(static_cast<size_t>(cols * kK));
    for (int col = 0; col < cols; ++col) {
      rows[static_cast<size_t>(col * kK + place(col))] = bf16_from_float(value(col));
    }
    matrix.pack_slice(slice, rows.data());
    std::vector<float> y(static_cast<size_t>(kRows * cols));
    matrix.multiply(bf16_kernels().front(), slice, x.data(), y.data(), kRows);
    for (int r = 0; r < kRows; ++r) {
      for (int col = 0; col < cols; ++col) {
        ASSERT_EQ(y[static_cast<size_t>(r * cols + col)],
                  value(col) * static_cast<float>(place(col) + r))
            << "slice " << slice << " row " << r << " col " << col;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
