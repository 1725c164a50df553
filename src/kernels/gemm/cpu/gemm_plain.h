#pragma once
#include <cstdint>

#include "device/dtype.h"

namespace foretoken::cpu {

// The product for CPUs without AVX-512: every output is one chain of additions over k, so that its
// bits cannot depend on the number of rows.
inline constexpr int kPlainCols = 16;    // columns of y packed together
inline constexpr int kPlainMaxRows = 4;  // rows of x that share the loads of the weight

// tile[r, c] = sum over i of x[r, i] * packed[i, c] for `rows` in 1..kPlainMaxRows rows of x, which
// are k elements of `dtype` (kF32 or kBF16) apart; packed is [k, kPlainCols].
void multiply_plain(const void* x, DType dtype, const float* packed, int rows, int64_t k,
                    float (&tile)[kPlainMaxRows][kPlainCols]);

}  // namespace foretoken::cpu
