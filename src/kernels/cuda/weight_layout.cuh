#pragma once
#include <cstdint>

#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// bfloat16 weights lie in the order in which the lanes of a warp need them for m16n8k16 products:
// [n / 16][k / 32][2 halves of 8 rows][8 rows][32 k], zero-filled to full tiles. Lane 4 g + t reads
// 16 bytes: row g, k 8 t .. 8 t + 7 of a half tile. Two products consume them: the first takes
// words 0 and 1 of every lane as its 16 k, the second words 2 and 3. So the order of k within a
// block of 32 is permuted, equally for weights and activations, and the same for every number of
// rows.
inline constexpr int kTileN = 16;
inline constexpr int kTileK = 32;
inline constexpr int kTileChunks = kTileN * kTileK / 8;  // of 16 bytes; 64

// float weights: [n / 32][k][32], so that a warp reads consecutive n.
inline constexpr int kFloatTileN = 32;

__host__ __device__ inline int64_t packed_elements(int64_t n, int64_t k, DType dtype) {
  if (dtype == DType::kBF16) {
    return (n + kTileN - 1) / kTileN * kTileN * ((k + kTileK - 1) / kTileK * kTileK);
  }
  return (n + kFloatTileN - 1) / kFloatTileN * kFloatTileN * k;
}

// Where element (row, column) lies.
__host__ __device__ inline int64_t packed_index(int64_t row, int64_t column, int64_t k,
                                                DType dtype) {
  if (dtype == DType::kBF16) {
    const int64_t k_tiles = (k + kTileK - 1) / kTileK;
    const int64_t tile = row / kTileN * k_tiles + column / kTileK;
    return tile * (kTileN * kTileK) + row % kTileN * kTileK + column % kTileK;
  }
  return (row / kFloatTileN * k + column) * kFloatTileN + row % kFloatTileN;
}

}  // namespace foretoken::cuda
