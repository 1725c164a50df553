#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm_epilogue.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"

namespace foretoken::cuda {

// Variants of the product; each has the same bits for the same row. Launched with KeepBest they set
// its num_columns, at most ceil(n / 16), and ceil(n / 32) above kFewRows rows.
void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream);  // uses_skinny(args)
void launch_gemm_skinny(const GemmArgs& args, KeepBest& best, cudaStream_t stream);
void launch_gemm_tiled(const GemmArgs& args, cudaStream_t stream);
void launch_gemm_tiled(const GemmArgs& args, KeepBest& best, cudaStream_t stream);
void launch_gemm_float(const GemmArgs& args, cudaStream_t stream);
void launch_gemm_float(const GemmArgs& args, KeepBest& best, cudaStream_t stream);

inline constexpr int kSkinnyRows = 16;
inline constexpr int kFewRows = 64;

inline bool uses_skinny(const GemmArgs& args) {
  return args.max_rows <= kSkinnyRows && args.k % 8 == 0;
}

// Adds a block of 32 k to c: `low` and `high` are this lane's chunks of weight rows g and g + 8,
// `x` its chunk of x row g.
__device__ inline void multiply_block(float (&c)[4], const uint4& low, const uint4& high,
                                      const uint4& x) {
  mma_bf16(c, low.x, high.x, low.y, high.y, x.x, x.y);
  mma_bf16(c, low.z, high.z, low.w, high.w, x.z, x.w);
}

}  // namespace foretoken::cuda
