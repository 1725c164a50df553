#pragma once
#include <cstdint>

#include "kernels/gemm/cpu/half_kernels.h"

// The products of weights of halves for one instruction set: included by the files of each, which
// name the vectors that they have. Everything is internal to the file, so that no linker merges
// code of two instruction sets.
namespace foretoken::cpu {
namespace {

// V: kLanes floats at once.
//   halves(at): that many halves as floats; floats(v): the same number in all
//   multiply_add(a, b, c) = a * b + c, rounded once
template <class V, int kRows, int kVectors>
void multiply_vectors(const HalfPiece& piece, int first_vector) {
  constexpr int kLanes = V::kLanes, kCols = kMaxHalfGroups * kHalfCols;
  const uint16_t* weights[kVectors];
  typename V::Floats sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int col = (first_vector + v) * kLanes;
    weights[v] = piece.weights + col / kHalfCols * piece.group_stride + col % kHalfCols;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][v] = V::load(piece.sums + r * kCols + col);
  }
  for (int64_t i = 0; i < piece.count; ++i) {
    typename V::Floats w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V::prefetch(weights[v] + i * kHalfCols);
      w[v] = V::halves(weights[v] + i * kHalfCols);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto x = V::floats(piece.x[r * piece.x_stride + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = V::multiply_add(x, w[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      V::store(piece.sums + r * kCols + (first_vector + v) * kLanes, sums[r][v]);
    }
  }
}

template <class V, int kRows, int kGroups>
void multiply_halves(const HalfPiece& piece) {
  constexpr int kVectors = kGroups * kHalfCols / V::kLanes;
  constexpr int kAtOnce = kVectors < V::kVectors ? kVectors : V::kVectors;
  static_assert(kVectors % kAtOnce == 0 || kVectors < 2 * kAtOnce);
  int v = 0;
  for (; v + kAtOnce <= kVectors; v += kAtOnce) multiply_vectors<V, kRows, kAtOnce>(piece, v);
  if constexpr (kVectors % kAtOnce != 0) {
    multiply_vectors<V, kRows, kVectors % kAtOnce>(piece, v);
  }
}

template <class V, int kRows>
constexpr void set_half_products(HalfKernels& kernels) {
  if constexpr (kRows <= kMaxHalfRows) {
    kernels.products[kRows - 1][0] = multiply_halves<V, kRows, 1>;
    kernels.products[kRows - 1][1] = multiply_halves<V, kRows, 2>;
    kernels.products[kRows - 1][2] = multiply_halves<V, kRows, 3>;
    kernels.products[kRows - 1][3] = multiply_halves<V, kRows, 4>;
    set_half_products<V, kRows + 1>(kernels);
  }
}

template <class V>
constexpr HalfKernels make_half_kernels(const char* name) {
  HalfKernels kernels{};
  kernels.name = name;
  set_half_products<V, 1>(kernels);
  return kernels;
}

}  // namespace
}  // namespace foretoken::cpu
