#pragma once
#include <cstdint>

#include "device/device.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// bfloat16 weights lie in atoms of 8 rows x 64 k = 1 KB: [ceil(n / 8)][ceil(k / 64)][8 rows][128
// bytes], zero-filled to full atoms. The 16-byte chunk c of row r of an atom is stored at chunk
// c ^ r, which is the 128-byte swizzle of wgmma (K-major; atoms at multiples of 1 KB in shared
// memory) and lets ldmatrix read 8 rows without bank conflicts. Atoms of one group of 8 rows follow
// each other along k, so that a run of them is one bulk copy and needs no tensor map.
inline constexpr int kGroupRows = 8;
inline constexpr int kAtomK = 64;
inline constexpr int kAtomChunks = kGroupRows * kAtomK / 8;  // of 16 bytes; 64
inline constexpr int kAtomBytes = kAtomChunks * 16;

// float weights: [n / 32][k][32], so that a warp reads consecutive n.
inline constexpr int kFloatTileN = 32;

__host__ __device__ constexpr int num_atoms(int64_t k) { return ceil_div(k, kAtomK); }

// Place of chunk c of row r, counted in chunks, in an atom.
__host__ __device__ constexpr int atom_chunk(int r, int c) { return r * 8 + (c ^ r); }

__host__ __device__ inline int64_t packed_elements(int64_t n, int64_t k, DType dtype) {
  if (dtype == DType::kBF16)
    return int64_t{ceil_div(n, kGroupRows)} * num_atoms(k) * kAtomBytes / 2;
  return (n + kFloatTileN - 1) / kFloatTileN * kFloatTileN * k;
}

// [gate; up] of n rows in all, packed as WeightOrder::kGateUp: 8 gates, the 8 ups of the same
// columns, the next 8 gates and so on. Where row `row` stands.
__host__ __device__ constexpr int64_t gate_up_row(int64_t row, int64_t n) {
  const int part = row < n / 2 ? 0 : 1;
  const int64_t column = row - part * (n / 2);
  return (column / kGroupRows * 2 + part) * kGroupRows + column % kGroupRows;
}

// Rows of the packed matrix [n, k]: whole groups of gates and of ups.
__host__ __device__ constexpr int64_t packed_rows(int64_t n, WeightOrder order) {
  return order == WeightOrder::kPlain ? n : 2 * kGroupRows * ceil_div(n / 2, kGroupRows);
}

// Where element (row, column) lies.
__host__ __device__ inline int64_t packed_index(int64_t row, int64_t column, int64_t k,
                                                DType dtype) {
  if (dtype == DType::kBF16) {
    const int r = static_cast<int>(row % kGroupRows);
    const int c = static_cast<int>(column % kAtomK);
    const int64_t atom = row / kGroupRows * num_atoms(k) + column / kAtomK;
    return (atom * kAtomChunks + atom_chunk(r, c / 8)) * 8 + c % 8;
  }
  return (row / kFloatTileN * k + column) * kFloatTileN + row % kFloatTileN;
}

}  // namespace foretoken::cuda
