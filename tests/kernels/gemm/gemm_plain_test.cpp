#include "kernels/gemm/cpu/gemm_plain.h"

#include <gtest/gtest.h>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

// One chain of additions over k for every output, so the plain loop has the same bits.
TEST(GemmPlain, EveryOutputIsOneChainOfAdditions) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int k : {1, 7, 192, 1000}) {
      const TypedData x = typed_data(random_floats(static_cast<size_t>(4 * k), 1), dtype);
      const auto packed = random_floats(static_cast<size_t>(k * kPlainCols), 2);
      for (int rows = 1; rows <= kPlainMaxRows; ++rows) {
        float tile[kPlainMaxRows][kPlainCols];
        multiply_plain(x.data(), dtype, packed.data(), rows, k, tile);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < kPlainCols; ++c) {
            float want = 0;
            for (int i = 0; i < k; ++i) want += packed[i * kPlainCols + c] * x.values[r * k + i];
            ASSERT_EQ(tile[r][c], want) << rows << " rows, k " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
