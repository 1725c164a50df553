#pragma once
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// Threads of a block copy values [begin, begin + kThreads * kPerThread) of a row of `width`, by way
// of float where the types differ. All loads are on their way before the first store.
template <int kThreads, int kPerThread, class In, class Out>
__device__ inline void copy_piece(const In* from, Out* to, int begin, int width) {
  In values[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + threadIdx.x + j * kThreads;
    if (i < width) values[j] = from[i];
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + threadIdx.x + j * kThreads;
    if (i < width) to[i] = from_float<Out>(to_float(values[j]));
  }
}

}  // namespace foretoken::cuda
