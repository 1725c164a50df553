#pragma once
#include <cstdint>
#include <type_traits>

namespace foretoken::cuda {

// The `top`-th of a block's ranks, the lowest first, and how many equal to it are chosen.
struct RankThreshold {
  uint32_t rank;
  int equal;
};

// Shared memory of a block of Threads threads that chooses.
template <int Threads>
struct RankScratch {
  static constexpr int kDigits = 2048;
  int counts[kDigits];
  int warps[Threads / 32];
  RankThreshold found;
};

// Sum of what the threads before give; every thread of the block calls it. total: of all.
template <int Threads>
__device__ int sum_before(int value, int* warps, int* total = nullptr) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int upto = value;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, upto, offset);
    if (lane >= offset) upto += other;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = upto;
  __syncthreads();
  const int of_lane = lane < Threads / 32 ? warps[lane] : 0;
  if (total != nullptr) *total = __reduce_add_sync(0xffffffffu, of_lane);
  return __reduce_add_sync(0xffffffffu, lane < warp ? of_lane : 0) + upto - value;
}

// By digits of 11, 11 and 10 bits from the highest on; every thread of Threads calls it. rank_at(i)
// is the rank of candidate i of `count`, which are more than `top`.
template <int Threads, class RankAt>
__device__ RankThreshold find_threshold(int count, int top, RankScratch<Threads>& scratch,
                                        const RankAt& rank_at) {
  constexpr int kDigits = RankScratch<Threads>::kDigits;
  constexpr int kOwn = kDigits / Threads;  // digits of a thread
  constexpr int kAtOnce = 8;
  const int thread = static_cast<int>(threadIdx.x);
  RankThreshold found{0, top};
  for (int round = 0; round < 3; ++round) {
    const int shift = round == 0 ? 21 : round == 1 ? 10 : 0;
    const uint32_t known = round == 0 ? 0 : 0xffffffffu << (round == 1 ? 21 : 10);
    for (int i = thread; i < kDigits; i += Threads) scratch.counts[i] = 0;
    __syncthreads();
    for (int begin = thread; begin < count; begin += Threads * kAtOnce) {
      uint32_t ranks[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) ranks[i] = rank_at(min(begin + i * Threads, count - 1));
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (begin + i * Threads >= count || (ranks[i] & known) != found.rank) continue;
        atomicAdd(scratch.counts + ((ranks[i] & ~known) >> shift), 1);
      }
    }
    __syncthreads();
    int own = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) own += scratch.counts[thread * kOwn + i];
    int rest = found.equal - sum_before<Threads>(own, scratch.warps);
    if (rest > 0 && rest <= own) {
      int digit = thread * kOwn;
      while (rest > scratch.counts[digit]) rest -= scratch.counts[digit++];
      scratch.found = {found.rank | static_cast<uint32_t>(digit) << shift, rest};
    }
    __syncthreads();
    found = scratch.found;
  }
  return found;
}

// Keeps all that are chosen.
struct KeepsAll {
  __device__ bool operator()(int) const { return true; }
};

// Calls take(i, whether it exists, its rank) for candidates [begin, end), every lane of a warp at
// the same time.
template <class RankAt, class Take>
__device__ void for_ranks(int begin, int end, const RankAt& rank_at, const Take& take) {
  constexpr int kAtOnce = 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int from = begin; from < end; from += 32 * kAtOnce) {
    uint32_t ranks[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) ranks[i] = rank_at(min(from + i * 32 + lane, end - 1));
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int index = from + i * 32 + lane;
      if (index - lane < end) take(index, index < end, ranks[i]);
    }
  }
}

// Calls visit(i, place) for the candidates that are chosen, the earlier of equal ones first, and
// that keeps(i) lets in; `place` is the number among these, in order. Every thread of the block
// calls it and gets how many these are.
template <int Threads, class RankAt, class Keeps, class Visit>
__device__ int visit_best(int count, const RankThreshold& threshold, RankScratch<Threads>& scratch,
                          const RankAt& rank_at, const Keeps& keeps, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int each = (count + Threads - 1) / Threads * 32;  // of a warp
  const int begin = min(warp * each, count), end = min(begin + each, count);
  int above = 0, equal = 0;
  for_ranks(begin, end, rank_at, [&](int, bool exists, uint32_t rank) {
    above += exists && rank < threshold.rank ? 1 : 0;
    equal += exists && rank == threshold.rank ? 1 : 0;
  });
  above = __reduce_add_sync(0xffffffffu, above);
  equal = __reduce_add_sync(0xffffffffu, equal);
  // What a warp has is told by its last lane.
  const int before =
      __shfl_sync(0xffffffffu, sum_before<Threads>(lane == 31 ? equal : 0, scratch.warps), 0);
  const uint32_t earlier = (1u << lane) - 1;
  const auto walk = [&](int place, const auto& take) {
    int equal_before = before;
    for_ranks(begin, end, rank_at, [&](int index, bool exists, uint32_t rank) {
      const bool is_equal = exists && rank == threshold.rank;
      const uint32_t equals = __ballot_sync(0xffffffffu, is_equal);
      const bool chosen = (exists && rank < threshold.rank) ||
                          (is_equal && equal_before + __popc(equals & earlier) < threshold.equal);
      const bool kept = chosen && keeps(index);
      const uint32_t all = __ballot_sync(0xffffffffu, kept);
      if (kept) take(index, place + __popc(all & earlier));
      equal_before += __popc(equals);
      place += __popc(all);
    });
    return place;
  };
  int kept = above + min(max(threshold.equal - before, 0), equal);
  if constexpr (!std::is_same_v<Keeps, KeepsAll>) kept = walk(0, [](int, int) {});
  int total = 0;
  const int place = __shfl_sync(
      0xffffffffu, sum_before<Threads>(lane == 31 ? kept : 0, scratch.warps, &total), 0);
  walk(place, visit);
  return total;
}

}  // namespace foretoken::cuda
