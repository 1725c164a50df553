#pragma once
#include <algorithm>

#include "kernels/cuda/common.cuh"

// Launches that fill and read the messages of ops through NCCL.
namespace foretoken::cuda {

inline constexpr int kMessageThreads = 256;    // of a block
inline constexpr int kMaxMessageBlocks = 256;  // of a rank's part

inline int message_blocks(int64_t elements) {
  return std::clamp(ceil_div(elements, kMessageThreads), 1, kMaxMessageBlocks);
}

// Calls use(i) for i in [0, count), shared out to the threads of the blocks along x, of which each
// has kMessageThreads.
template <class Use>
__device__ void for_each_element(int64_t count, const Use& use) {
  for (int64_t i = int64_t{blockIdx.x} * kMessageThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kMessageThreads) {
    use(i);
  }
}

}  // namespace foretoken::cuda
