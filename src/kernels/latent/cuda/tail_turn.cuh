#pragma once
#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"

// How the last elements of heads turn, as kernels/latent/cpu/tail_turn.h does on the CPU.
namespace foretoken::cuda {

inline constexpr int kTailThreads = 128;

// Sum over a block of kTailThreads in a fixed order; every thread gets it and calls it. `sums`
// holds a float for each warp.
__device__ inline float sum_of_tail_block(float value, float* sums) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kTailThreads / 32; ++i) sum += sums[i];
  return sum;
}

// Where a head's tail begins, and by which position it turns; sense -1: back.
struct TailPlace {
  int first;
  float position;
  float sense = 1;

  // Element i of the turned head, whose elements before are head(i).
  template <class Head>
  __device__ float element(int i, const float* inv_freq, float scaling, const Head& head) const {
    if (i < first) return head(i);
    const int low = first + (i - first) / 2 * 2;
    const float2 by = turn_at(inv_freq[(i - first) / 2], position, scaling);
    const float sine = sense * by.y;
    return i == low ? head(low) * by.x - head(low + 1) * sine
                    : head(low + 1) * by.x + head(low) * sine;
  }
};

}  // namespace foretoken::cuda
