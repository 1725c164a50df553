#pragma once
#include <cstdint>

#include "kernels/cuda/wgmma.cuh"

// Products of a warpgroup (4 warps, 64 rows) whose operand a lies in registers; only sm_90a has
// them. Warp w of the group holds rows 16 w .. 16 w + 15 of the result in the layout of `mma_bf16`.
namespace foretoken::cuda {

// A tile of rows of 64 columns (128 bytes) in the 128-byte swizzle: chunk c of row r lies at
// 128 r + 16 (c ^ r % 8); `address` on 1 KB. Wider tiles follow each other, `column_bytes` apart.
__device__ inline uint64_t swizzled_tile(uint32_t address, int column_bytes) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t(column_bytes >> 4) << 16 |
         uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

// c += a * b: 64 rows of a in registers, 16 k, 64 or 128 columns of b, whose rows (k) lie in shared
// memory. Without `add` c starts at zero.
__device__ inline void wgmma_values(float (&c)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
  FT_WGMMA_OWN(64, "k16.f32.bf16.bf16", "1, 1, 1", 32, 33, 34, 35, 36, 37);
}
__device__ inline void wgmma_values(float (&c)[64], const uint32_t (&a)[4], uint64_t b, bool add) {
  FT_WGMMA_OWN(128, "k16.f32.bf16.bf16", "1, 1, 1", 64, 65, 66, 67, 68, 69);
}

}  // namespace foretoken::cuda
