#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"

namespace foretoken::cuda {

// Variants of the product; each has the same bits for the same row.
void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream);  // max_rows <= kSkinnyRows
void launch_gemm_tiled(const GemmArgs& args, cudaStream_t stream);
void launch_gemm_float(const GemmArgs& args, cudaStream_t stream);

inline constexpr int kSkinnyRows = 16;

// y[row, n] = value + bias[n].
__device__ inline void store_output(const GemmArgs& args, int row, int n, float value) {
  if (args.bias != nullptr) value += args.bias[n];
  const int64_t at = int64_t{row} * args.n + n;
  if (args.out_dtype == DType::kBF16) {
    static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
  } else {
    static_cast<float*>(args.y)[at] = value;
  }
}

// The result of one m16n8k16 chain: 16 rows of the weight from n on, 8 rows of x from `row` on.
__device__ inline void store_tile(const GemmArgs& args, int live, int row, int n,
                                  const float (&c)[4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = row + lane % 4 * 2 + i % 2;
    const int column = n + lane / 4 + i / 2 * 8;
    if (r < live && column < args.n) store_output(args, r, column, c[i]);
  }
}

// Adds a block of 32 k to c: `low` and `high` are this lane's chunks of weight rows g and g + 8,
// `x` its chunk of x row g.
__device__ inline void multiply_block(float (&c)[4], const uint4& low, const uint4& high,
                                      const uint4& x) {
  mma_bf16(c, low.x, high.x, low.y, high.y, x.x, x.y);
  mma_bf16(c, low.z, high.z, low.w, high.w, x.z, x.w);
}

}  // namespace foretoken::cuda
