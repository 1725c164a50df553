#pragma once
#include <cstdint>

#include "kernels/cuda/block_scan.cuh"

namespace foretoken::cuda {

// The `top`-th of a block's ranks, the lowest first, and how many equal to it are chosen.
struct RankThreshold {
  uint32_t rank;
  int equal;
};

// By digits of eight bits from the highest on; every thread of Threads calls it. rank_at(i) is the
// rank of candidate i of `count`, which are more than `top`; `counts` holds Threads ints of shared
// memory, at least 256.
template <int Threads, class RankAt>
__device__ RankThreshold find_threshold(int count, int top, int* counts, const RankAt& rank_at) {
  __shared__ RankThreshold found;
  uint32_t prefix = 0;
  int wanted = top;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += Threads) counts[i] = 0;
    __syncthreads();
    const uint32_t known = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
    for (int i = threadIdx.x; i < count; i += Threads) {
      const uint32_t rank = rank_at(i);
      if ((rank & known) == prefix) atomicAdd(counts + (rank >> shift & 255), 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 0;
      while (wanted > counts[digit]) wanted -= counts[digit++];
      found = {prefix | static_cast<uint32_t>(digit) << shift, wanted};
    }
    __syncthreads();
    prefix = found.rank;
    wanted = found.equal;
    __syncthreads();
  }
  return {prefix, wanted};
}

// Calls visit(i, place, chosen) for all candidates, every thread of the block at the same time: of
// those that are chosen, the earlier of equal ones first, `place` is the number among them, in
// order. Threads behind the last candidate are given no chosen one.
template <int Threads, class RankAt, class Visit>
__device__ void visit_best(int count, const RankThreshold& threshold, int* counts,
                           const RankAt& rank_at, const Visit& visit) {
  int above = 0, equal = 0;  // of the candidates before
  for (int begin = 0; begin < count; begin += Threads) {
    const int index = begin + static_cast<int>(threadIdx.x);
    const bool exists = index < count;
    const uint32_t rank = exists ? rank_at(index) : 0xffffffffu;
    const bool is_above = exists && rank < threshold.rank;
    const bool is_equal = exists && rank == threshold.rank;
    const int both = (is_above ? 1 : 0) + (is_equal ? 1 << 16 : 0);
    const int before = block_scan<Threads>(both, counts) - both;
    const int total = counts[Threads - 1];
    const int own_above = above + (before & 0xffff), own_equal = equal + (before >> 16);
    visit(index, own_above + min(own_equal, threshold.equal),
          is_above || (is_equal && own_equal < threshold.equal));
    above += total & 0xffff;
    equal += total >> 16;
  }
}

}  // namespace foretoken::cuda
