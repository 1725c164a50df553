#pragma once
#include "kernels/attention/cuda/attention_partials.cuh"

// Sums of a row and head over splits whose partial results lie in a PartialSpace.
namespace foretoken::cuda {

inline constexpr int kWarpSplits = 32;  // that one warp joins

// The highest score, sum of weights and some dimensions' weighted sums of some splits.
template <int Dims = 1>
struct PartialSum {
  float highest = -INFINITY;
  float weights = 0;
  float values[Dims] = {};
};

// The highest of this lane's score and those of the lanes before.
__device__ inline float highest_upto(float score) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float other = __shfl_up_sync(0xffffffffu, score, offset);
    if (static_cast<int>(threadIdx.x) % 32 >= offset) score = fmaxf(score, other);
  }
  return score;
}

// That of the lanes before alone.
__device__ inline float highest_before(float highest_upto) {
  const float before = __shfl_up_sync(0xffffffffu, highest_upto, 1);
  return threadIdx.x % 32 == 0 ? -INFINITY : before;
}

// The splits of a row and head that are merged, and where their partial results begin.
struct PartialRange {
  int64_t index = 0;
  int count = 0;

  PartialRange() = default;
  __device__ PartialRange(const AttentionArgs& args, const PartialRow& parts, int position,
                          int head) {
    const int seen = AttentionSplits::of(first_visible(args, position)) - parts.first_split;
    const int first = max(seen, 0);
    index = parts.first + int64_t{head} * parts.splits + first;
    count = AttentionSplits::of(position) - parts.first_split + 1 - first;
  }
  // That of another lane; the whole warp asks.
  __device__ PartialRange of_lane(int lane) const {
    PartialRange other;
    other.index = __shfl_sync(0xffffffffu, index, lane);
    other.count = __shfl_sync(0xffffffffu, count, lane);
    return other;
  }
};

// Dims dimensions of a partial result, from the L2 cache: another multiprocessor may have left it.
template <int Dims>
__device__ inline void load_values(float (&values)[Dims], const float* from) {
  if constexpr (Dims == 1) {
    values[0] = __ldcg(from);
  } else if constexpr (Dims == 2) {
    const float2 two = __ldcg(reinterpret_cast<const float2*>(from));
    values[0] = two.x;
    values[1] = two.y;
  } else {
    static_assert(Dims == 4);
    const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
  }
}

// Folds partial results, in order: each lane finds the factors of a split and sums up the Dims
// dimensions from d on.
template <int Dims>
__device__ inline PartialSum<Dims> fold_by_warp(const PartialSpace& space,
                                                const PartialRange& range, int d) {
  constexpr int kLoadsAtOnce = 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  PartialSum<Dims> sum;
  MergeScales mine{};
  float weights = 0;
  for (int begin = 0; begin < range.count; begin += kLoadsAtOnce) {
    const int64_t index = range.index + begin;
    const int last = range.count - 1 - begin;
    float loaded[kLoadsAtOnce][Dims];
#pragma unroll
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      load_values(loaded[i], space.values(index + min(i, last)) + d);
    }
    if (begin % 32 == 0) {
      const float2 state = lane <= last ? __ldcg(space.state(index + lane)) : float2{-INFINITY, 0};
      const float upto = highest_upto(state.x);
      mine = merge_scales(fmaxf(highest_before(upto), sum.highest), state.x);
      weights = state.y;
      sum.highest = fmaxf(sum.highest, __shfl_sync(0xffffffffu, upto, 31));
    }
#pragma unroll
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      if (i > last) break;
      const int from = begin % 32 + i;
      const MergeScales scales{__shfl_sync(0xffffffffu, mine.running, from),
                               __shfl_sync(0xffffffffu, mine.partial, from), 0};
      sum.weights = merge(sum.weights, __shfl_sync(0xffffffffu, weights, from), scales);
#pragma unroll
      for (int j = 0; j < Dims; ++j) sum.values[j] = merge(sum.values[j], loaded[i][j], scales);
    }
  }
  return sum;
}

}  // namespace foretoken::cuda
