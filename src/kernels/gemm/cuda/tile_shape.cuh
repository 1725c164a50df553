#pragma once
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"

namespace foretoken::cuda {

// A block computes RowsX rows of x times RowsW rows of the weight with WarpsX x WarpsW warps, in
// stages of BlockK columns.
template <int RowsX_, int RowsW_, int WarpsX_, int WarpsW_, int BlockK_, int Stages_,
          int BlocksPerSm_>
struct TileShape {
  static constexpr int kRowsX = RowsX_;
  static constexpr int kRowsW = RowsW_;
  static constexpr int kWarpsX = WarpsX_;
  static constexpr int kBlockK = BlockK_;
  static constexpr int kStages = Stages_;
  static constexpr int kBlocksPerSm = BlocksPerSm_;
  static constexpr int kThreads = kWarpsX * WarpsW_ * 32;
  static constexpr int kAtoms = kBlockK / kAtomK;
  static constexpr int kRowChunks = kBlockK / 8;             // of a row of x
  static constexpr int kGroupChunks = kAtoms * kAtomChunks;  // of 8 weight rows
  static constexpr int kChunksX = kRowsX * kRowChunks;
  static constexpr int kChunksW = kRowsW / kGroupRows * kGroupChunks;
  static constexpr int kTilesX = kRowsX / kWarpsX / 8;       // of a warp
  static constexpr int kTilesW = kRowsW / WarpsW_ / kTileN;  // of a warp
  static constexpr int kBytes = kStages * (kChunksX + kChunksW) * 16;
  static_assert(kThreads % kRowChunks == 0 && kChunksX % kThreads == 0 && kChunksW % kThreads == 0);
  static_assert(kThreads % kGroupChunks == 0 && kTilesX % 2 == 0);
};

// Place of the 16-byte chunk c of x row r: 8 rows use different banks.
template <class Shape>
__device__ int x_chunk(int r, int c) {
  return r * Shape::kRowChunks + (c ^ (r & 7));
}

// Adds the products of a stage, x laid out by x_chunk and the weight in whole groups, to a warp's
// sums.
template <class Shape>
__device__ void multiply_stage(float (&c)[Shape::kTilesW][Shape::kTilesX][4], const uint4* x,
                               const uint4* w) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int x_row = warp % Shape::kWarpsX * Shape::kTilesX * 8 + lane / 16 * 8 + lane % 8;
  const uint4* groups = w + warp / Shape::kWarpsX * Shape::kTilesW * 2 * Shape::kGroupChunks;
#pragma unroll
  for (int step = 0; step < Shape::kBlockK / 16; ++step) {
    uint32_t a[Shape::kTilesW][4];
#pragma unroll
    for (int i = 0; i < Shape::kTilesW; ++i) {
      load_weight_step(a[i], groups + i * 2 * Shape::kGroupChunks + step / 4 * kAtomChunks,
                       Shape::kGroupChunks, step % 4);
    }
#pragma unroll
    for (int j = 0; j < Shape::kTilesX; j += 2) {
      uint32_t b[4];
      const uint4* from = x + x_chunk<Shape>(x_row + j * 8, step * 2 + lane / 8 % 2);
      load_matrices(b, shared_address(from));
#pragma unroll
      for (int i = 0; i < Shape::kTilesW; ++i) {
        multiply_step(c[i][j], a[i], b[0], b[1]);
        multiply_step(c[i][j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

}  // namespace foretoken::cuda
