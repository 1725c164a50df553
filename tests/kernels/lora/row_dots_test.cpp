#include "kernels/lora/cpu/row_dots.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random_data.h"

namespace foretoken {
namespace {

// Whole vectors, and elements behind them.
TEST(RowDots, FourRowsTimesARow) {
  for (const int k : {3, 16, 32, 83}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const TypedData matrix = typed_data(random_floats(size_t(8) * k, 1), dtype);
      const TypedData x = typed_data(random_floats(size_t(2) * k, 2), dtype);
      float sums[cpu::kDotsAtOnce];
      cpu::multiply_four({matrix.data(), x.data(), k, dtype}, 4, 1, sums);
      for (int j = 0; j < cpu::kDotsAtOnce; ++j) {
        double want = 0;
        for (int i = 0; i < k; ++i) {
          want += double(matrix.values[size_t(4 + j) * k + i]) * x.values[size_t(k) + i];
        }
        EXPECT_NEAR(sums[j], want, 1e-5 * std::sqrt(k)) << "row " << j << " of " << k;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
