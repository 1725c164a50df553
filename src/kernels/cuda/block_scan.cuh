#pragma once

namespace foretoken::cuda {

// Inclusive prefix sum over a block of Threads threads; every thread calls it. `scratch` holds
// Threads ints, of which the last is the total until the next call.
template <int Threads>
__device__ int block_scan(int value, int* scratch) {
  __syncthreads();
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int offset = 1; offset < Threads; offset *= 2) {
    const int before = threadIdx.x >= offset ? scratch[threadIdx.x - offset] : 0;
    __syncthreads();
    scratch[threadIdx.x] += before;
    __syncthreads();
  }
  return scratch[threadIdx.x];
}

}  // namespace foretoken::cuda
