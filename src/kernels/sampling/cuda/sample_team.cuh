#pragma once
#include <cooperative_groups.h>

#include <cstdint>

namespace foretoken::cuda {

inline constexpr int kTeamThreads = 1024;  // of a block
inline constexpr int kTeamBins = kTeamThreads;
inline constexpr int kMaxCandidates = 2048;  // of a block

// Shared memory of one block of a team.
struct TeamShared {
  unsigned long long bins[kTeamBins];
  uint64_t scan[kTeamThreads / 32];
  uint64_t block_value;
  uint64_t answer_bin;
  uint64_t answer_rest;
  int num_candidates;  // may exceed those that are kept
  float candidates[kMaxCandidates];
};

// The blocks that work on one row: a thread block cluster of `Size` blocks. Only integers are
// reduced, so that the size changes no result. All functions are called by every thread of the
// team.
template <int Size>
class Team {
 public:
  __device__ explicit Team(TeamShared& memory) : shared(memory) {}

  TeamShared& shared;

  __device__ static int rank() { return static_cast<int>(blockIdx.x) % Size; }

  __device__ void sync() const {
    if constexpr (Size == 1) {
      __syncthreads();
    } else {
#if __CUDA_ARCH__ >= 900
      cooperative_groups::this_cluster().sync();
#endif
    }
  }

  // The same variable in the shared memory of block `other`.
  template <class T>
  __device__ T& of(T& local, int other) const {
#if __CUDA_ARCH__ >= 900
    if constexpr (Size > 1)
      return *cooperative_groups::this_cluster().map_shared_rank(&local, other);
#endif
    return local;
  }

  // combine() over all threads, for a combine that may see a value twice (min, max); every thread
  // gets the result.
  template <class Combine>
  __device__ uint64_t reduce(uint64_t value, const Combine& combine) const {
    value = combine_block(value, combine);
    for (int i = 0; i < Size; ++i) value = combine(value, of(shared.block_value, i));
    sync();
    return value;
  }

  // Sum over all threads; every thread gets it.
  __device__ uint64_t sum(uint64_t value) const {
    combine_block(value, [](uint64_t a, uint64_t b) { return a + b; });
    uint64_t total = 0;
    for (int i = 0; i < Size; ++i) total += of(shared.block_value, i);
    sync();
    return total;
  }

  __device__ void clear_bins() const {
    __syncthreads();
    shared.bins[threadIdx.x] = 0;
    __syncthreads();
  }

  // The bins of all blocks are added up; target(sum of all bins) is the sum wanted, counted from
  // the highest bin down. Afterwards answer_bin is the bin in which it is reached and answer_rest
  // what is still wanted there; bin 0 when it is never reached.
  template <class Target>
  __device__ void find_bin(const Target& target) const {
    sync();
    const int bin = kTeamBins - 1 - static_cast<int>(threadIdx.x);
    uint64_t own = 0;
    for (int i = 0; i < Size; ++i) own += of(shared.bins[bin], i);
    uint64_t sum = scan_warp(own);
    if (threadIdx.x % 32 == 31) shared.scan[threadIdx.x / 32] = sum;
    __syncthreads();
    const uint64_t warps = scan_warp(shared.scan[threadIdx.x % 32]);
    const uint64_t before = __shfl_sync(0xffffffffu, warps, (threadIdx.x / 32 + 31) % 32);
    if (threadIdx.x >= 32) sum += before;
    const uint64_t wanted = target(__shfl_sync(0xffffffffu, warps, 31));
    const bool reached_here = sum >= wanted && sum - own < wanted;
    if (reached_here || (bin == 0 && sum < wanted)) {
      shared.answer_bin = static_cast<uint64_t>(bin);
      shared.answer_rest = wanted - (sum - own);
    }
    sync();
  }

 private:
  // Sum over the lanes up to this one.
  __device__ static uint64_t scan_warp(uint64_t value) {
    for (int offset = 1; offset < 32; offset *= 2) {
      const uint64_t before = __shfl_up_sync(0xffffffffu, value, offset);
      if (static_cast<int>(threadIdx.x % 32) >= offset) value += before;
    }
    return value;
  }

  // combine() over the threads of each block, every value once, into block_value.
  template <class Combine>
  __device__ uint64_t combine_block(uint64_t value, const Combine& combine) const {
    for (int offset = 16; offset > 0; offset /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (threadIdx.x % 32 == 0) shared.scan[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared.scan[threadIdx.x % 32];
    for (int offset = 16; offset > 0; offset /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (threadIdx.x == 0) shared.block_value = value;
    sync();
    return value;
  }
};

}  // namespace foretoken::cuda
