#pragma once
#include <cstdint>

#include "device/dtype.h"

namespace foretoken::cpu {

inline constexpr int kDotsAtOnce = 4;  // rows of a matrix that share what is read of x

// A matrix and what it multiplies, rows of k elements of `dtype`, kF32 or kBF16.
struct RowDots {
  const void* matrix;
  const void* x;
  int64_t k;
  DType dtype;
};

// sums[j] = row first + j of the matrix times row `row` of x, j below kDotsAtOnce, in an order of
// k's alone.
void multiply_four(const RowDots& dots, int64_t first, int64_t row, float* sums);

}  // namespace foretoken::cpu
