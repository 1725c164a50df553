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

// Sum of the values of the lanes before this one; every lane of a warp calls it.
__device__ inline int sum_of_lanes_before(int value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int sum = value;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, offset);
    if (lane >= offset) sum += other;
  }
  return sum - value;
}

}  // namespace foretoken::cuda
