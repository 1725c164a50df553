#pragma once
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// Sum over a block of `threads` threads in a fixed order; every thread gets it. Once a kernel.
template <int threads>
__device__ float block_sum(float value) {
  __shared__ float warp_sums[threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < threads / 32; ++i) sum += warp_sums[i];
  return sum;
}

}  // namespace foretoken::cuda
