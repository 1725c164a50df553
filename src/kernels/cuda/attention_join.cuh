#pragma once
#include "kernels/cuda/attention_plan.cuh"

// Ends what the streaming attention, and that of long runs, left in parts.
namespace foretoken::cuda {

inline constexpr int kJoinThreads = 128;

// Folds the partial results of a row and head over 32 dimensions, in order: all threads load and
// find the factors of up to kJoinThreads splits, then one warp multiplies.
struct PartialFold {
  float values[kJoinThreads][32];
  float2 factors[kJoinThreads];  // of what is there and of the split
  float weights[kJoinThreads];
  float highest[kJoinThreads / 32];

  struct Sum {
    float highest = -INFINITY;
    float weights = 0;
    float value = 0;
  };

  // The next `count` splits from `index` on; d: this lane's dimension.
  __device__ void add(Sum& sum, const PartialSpace& space, int64_t index, int count, int d) {
    const int thread = static_cast<int>(threadIdx.x);
    const int first = thread / 32 * 32;
    float loaded[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      loaded[i] = first + i < count ? space.values(index + first + i)[d] : 0.0f;
    }
    const float2 state = thread < count ? *space.state(index + thread) : float2{-INFINITY, 0};
    find_factors(sum, state);
#pragma unroll
    for (int i = 0; i < 32; ++i) values[first + i][thread % 32] = loaded[i];
    __syncthreads();
    for (int warp = 0; warp < kJoinThreads / 32; ++warp) {
      sum.highest = fmaxf(sum.highest, highest[warp]);
    }
    if (thread < 32) {
#pragma unroll 8
      for (int i = 0; i < count; ++i) {
        const MergeScales scales{factors[i].x, factors[i].y, 0};
        sum.weights = merge(sum.weights, weights[i], scales);
        sum.value = merge(sum.value, values[i][thread], scales);
      }
    }
    __syncthreads();
  }

 private:
  __device__ void find_factors(const Sum& sum, float2 state) {
    const int thread = static_cast<int>(threadIdx.x);
    float upto = state.x;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, upto, offset);
      if (thread % 32 >= offset) upto = fmaxf(upto, other);
    }
    if (thread % 32 == 31) highest[thread / 32] = upto;
    float before = __shfl_up_sync(0xffffffffu, upto, 1);
    if (thread % 32 == 0) before = -INFINITY;
    __syncthreads();
    before = fmaxf(before, sum.highest);
    for (int warp = 0; warp < thread / 32; ++warp) before = fmaxf(before, highest[warp]);
    const MergeScales scales = merge_scales(before, state.x);
    factors[thread] = {scales.running, scales.partial};
    weights[thread] = state.y;
  }
};

// Block (rows, one of every gridDim.x; query head and 32 of its dimensions): ends the rows of short
// runs that were cut.
template <int Dim>
__global__ void __launch_bounds__(kJoinThreads)
    attention_join_kernel(const __grid_constant__ AttentionArgs args,
                          const __grid_constant__ PlanShape shape) {
  __shared__ PartialFold fold;
  wait_for_previous();
  const int live = min(args.counts->num_rows, args.max_rows);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int head = static_cast<int>(blockIdx.y) / (Dim / 32);
  const int d = static_cast<int>(blockIdx.y) % (Dim / 32) * 32 + lane;
  const int step = static_cast<int>(gridDim.x);
  for (int begin = static_cast<int>(blockIdx.x); begin < live; begin += step * 32) {
    const int mine = begin + lane * step;
    uint32_t cut = __ballot_sync(0xffffffffu, mine < live && shape.space.has_short(mine));
    for (; cut != 0; cut &= cut - 1) {
      const int row = begin + (__ffs(static_cast<int>(cut)) - 1) * step;
      const PartialRow parts = shape.space.rows()[row];
      const int position = args.positions[row];
      const int first = first_visible(args, position) / kAttentionSplit - parts.first_split;
      const int last = position / kAttentionSplit - parts.first_split;
      PartialFold::Sum sum;
      for (int i = first; i <= last; i += kJoinThreads) {
        fold.add(sum, shape.space, parts.first + int64_t{head} * parts.splits + i,
                 min(kJoinThreads, last + 1 - i), d);
      }
      if (threadIdx.x >= 32) continue;
      static_cast<__nv_bfloat16*>(args.out)[(int64_t{row} * args.num_heads + head) * Dim + d] =
          from_float<__nv_bfloat16>(normalized(sum.value, sum.weights));
    }
  }
}

// Block (row, query head), a thread for each dimension: ends a row of a long run that was cut,
// where rows are many and splits few.
template <int Dim>
__global__ void __launch_bounds__(Dim)
    attention_fold_kernel(const __grid_constant__ AttentionArgs args, PartialSpace space) {
  constexpr int kLoadsAtOnce = 8;
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int d = static_cast<int>(threadIdx.x);
  if (row >= min(args.counts->num_rows, args.max_rows) || !space.has_long(row)) return;
  const PartialRow parts = space.rows()[row];
  const int position = args.positions[row];
  const int first = max(first_visible(args, position) / kAttentionSplit - parts.first_split, 0);
  const int last = position / kAttentionSplit - parts.first_split;
  const int64_t index = parts.first + int64_t{head} * parts.splits;
  float highest = -INFINITY;
  float weights = 0;
  float value = 0;
  for (int begin = first; begin <= last; begin += kLoadsAtOnce) {
    float loaded[kLoadsAtOnce];
    float2 states[kLoadsAtOnce];
#pragma unroll
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      const int64_t at = index + min(begin + i, last);
      loaded[i] = space.values(at)[d];
      states[i] = *space.state(at);
    }
#pragma unroll
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      if (begin + i > last) break;
      const MergeScales scales = merge_scales(highest, states[i].x);
      highest = scales.highest;
      weights = merge(weights, states[i].y, scales);
      value = merge(value, loaded[i], scales);
    }
  }
  static_cast<__nv_bfloat16*>(args.out)[(int64_t{row} * args.num_heads + head) * Dim + d] =
      from_float<__nv_bfloat16>(normalized(value, weights));
}

}  // namespace foretoken::cuda
