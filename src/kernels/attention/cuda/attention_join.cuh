#pragma once
#include "kernels/attention/cuda/attention_fold.cuh"
#include "kernels/attention/cuda/attention_plan.cuh"

// Ends what the streaming attention, and that of long runs, left in parts.
namespace foretoken::cuda {

inline constexpr int kJoinThreads = 128;
inline constexpr int kJoinBlocksPerSm = 7;

// What fold_by_warp does, by all warps, for many splits: all threads load and find the factors of
// up to kJoinThreads splits, then the first warp multiplies.
struct PartialFold {
  float values[kJoinThreads][32];
  float2 factors[kJoinThreads];  // of what is there and of the split
  float weights[kJoinThreads];
  float highest[kJoinThreads / 32];

  // In the first warp, for this lane's dimension d.
  __device__ PartialSum<> by_block(const PartialSpace& space, const PartialRange& range, int d) {
    PartialSum<> sum;
    for (int i = 0; i < range.count; i += kJoinThreads) {
      add(sum, space, range.index + i, min(kJoinThreads, range.count - i), d);
    }
    return sum;
  }

 private:
  __device__ void add(PartialSum<>& sum, const PartialSpace& space, int64_t index, int count,
                      int d) {
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
        sum.values[0] = merge(sum.values[0], values[i][thread], scales);
      }
    }
    __syncthreads();
  }

  __device__ void find_factors(const PartialSum<>& sum, float2 state) {
    const int thread = static_cast<int>(threadIdx.x);
    const float upto = highest_upto(state.x);
    if (thread % 32 == 31) highest[thread / 32] = upto;
    __syncthreads();
    float before = fmaxf(highest_before(upto), sum.highest);
    for (int warp = 0; warp < thread / 32; ++warp) before = fmaxf(before, highest[warp]);
    const MergeScales scales = merge_scales(before, state.x);
    factors[thread] = {scales.running, scales.partial};
    weights[thread] = state.y;
  }
};

// Whether a tile with a row of this position can have been cut; -1: there is no row.
__device__ inline bool may_be_cut(const AttentionArgs& args, const PlanShape& shape, int position) {
  const int reach = shape.tile.tokens - 1;
  const int first = first_visible(args, max(position - reach, 0));
  const int splits = AttentionSplits::of(position + reach) - AttentionSplits::of(first) + 1;
  return position >= 0 && splits > uncut_splits(args);
}

// Blocks (rows, one of every gridDim.x; query head and 32 of its dimensions): end the rows of short
// runs that were cut. A row with many splits takes all warps, others one each.
template <int Dim>
__global__ void __launch_bounds__(kJoinThreads, kJoinBlocksPerSm)
    attention_join_kernel(const __grid_constant__ AttentionArgs args,
                          const __grid_constant__ PlanShape shape) {
  extern __shared__ __align__(16) uint8_t fold[];  // a PartialFold
  const int live = min(args.counts->num_rows, args.max_rows);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y) / (Dim / 32);
  const int d = static_cast<int>(blockIdx.y) % (Dim / 32) * 32 + lane;
  const int step = static_cast<int>(gridDim.x);
  // One warp waits longer for what it reads, but with many rows all have some.
  const int max_of_warp = live > step ? 2 * kWarpSplits : kWarpSplits;
  const auto position_of = [&](int row) { return row < live ? args.positions[row] : -1; };
  int mine = static_cast<int>(blockIdx.x) + lane * step;
  int position = position_of(mine);
  wait_for_previous();
  for (int begin = static_cast<int>(blockIdx.x); begin < live; begin += step * 32) {
    PartialRange own;
    if (may_be_cut(args, shape, position) && shape.space.has_short(mine)) {
      own = PartialRange(args, shape.space.rows()[mine], position, head);
    }
    mine += step * 32;
    position = position_of(mine);
    int turn = 0;
    for (uint32_t cut = __ballot_sync(0xffffffffu, own.count > 0); cut != 0; cut &= cut - 1) {
      const int at = __ffs(static_cast<int>(cut)) - 1;
      const PartialRange range = own.of_lane(at);
      const bool alone = range.count <= max_of_warp;
      if (alone && turn++ % (kJoinThreads / 32) != warp) continue;
      PartialSum<> sum;
      if (alone) {
        sum = fold_by_warp<1>(shape.space, range, d);
      } else {
        sum = reinterpret_cast<PartialFold*>(fold)->by_block(shape.space, range, d);
      }
      if (!alone && warp > 0) continue;
      const int64_t row = begin + at * step;
      const float weights = with_sink(args, head, sum.highest, sum.weights);
      static_cast<__nv_bfloat16*>(args.out)[(row * args.num_heads + head) * Dim + d] =
          from_float<__nv_bfloat16>(
              scaled(args, row, kv_head_of(args, head), normalized(sum.values[0], weights)));
    }
  }
}

// Block (row, query head), a thread for each dimension: ends a row of a long run that was cut,
// where rows are many and splits few.
template <int Dim>
__global__ void __launch_bounds__(Dim)
    attention_fold_kernel(const __grid_constant__ AttentionArgs args, PartialSpace space) {
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int d = static_cast<int>(threadIdx.x);
  if (row >= min(args.counts->num_rows, args.max_rows) || !space.has_long(row)) return;
  const PartialRange range(args, space.rows()[row], args.positions[row], head);
  const PartialSum<> sum = fold_by_warp<1>(space, range, d);
  const float weights = with_sink(args, head, sum.highest, sum.weights);
  static_cast<__nv_bfloat16*>(args.out)[(int64_t{row} * args.num_heads + head) * Dim + d] =
      from_float<__nv_bfloat16>(
          scaled(args, row, kv_head_of(args, head), normalized(sum.values[0], weights)));
}

}  // namespace foretoken::cuda
