#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/attention/cuda/kv_codes.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;

// Result over some KV positions; the lane holds dimensions lane, lane + 32, ...: PerLane of them at
// most.
template <int PerLane>
struct Partial {
  float highest = -INFINITY;
  float weights = 0;
  float values[PerLane] = {};
};

// An entry of elements of T, or of their codes.
template <class T, KvFormat Format>
struct Entry {
  const KvLayer& kv;
  const uint8_t* bytes;

  __device__ float operator[](int d) const { return entry_value<T, Format>(kv, bytes, d); }
};

// One warp: one row and query head.
template <class T, int PerLane, KvFormat Format>
struct WarpAttention {
  const AttentionArgs& args;
  Scoring scoring;
  const float* q;  // shared memory, head_dim
  int slot;
  int head;
  int kv_head;
  int position;
  int last_kv;  // that it sees
  float slope;
  float of_keys;  // scale of their codes

  __device__ Entry<T, Format> entry(const void* cache, int kv_position) const {
    const int64_t index = kv_entry(args, slot, kv_position, kv_head);
    return {args.kv, static_cast<const uint8_t*>(cache) + index * kv_entry_bytes(args.kv)};
  }

  __device__ float score(int kv_position) const {
    const int dim = args.kv.head_dim;
    const Entry<T, Format> key = entry(args.kv.k, kv_position);
    float dot = 0;
    for (int d = 0; d < dim; ++d) dot = fmaf(q[d], key[d], dot);
    if (Format == KvFormat::kFp8) dot = __fmul_rn(dot, of_keys);
    const float score = __fmul_rn(scoring.capped ? capped(scoring, dot) : dot, scoring.scale);
    return with_distance(args, head, slope, kv_position - position, score);
  }

  // 32 positions from `begin` on; those outside [first, last] weigh nothing.
  __device__ void add_positions(Partial<PerLane>& part, int begin, int first, int last) const {
    const int lane = threadIdx.x % 32;
    const int value_dim = args.kv.value_size();
    const int mine = begin + lane;
    const bool visible = mine >= first && mine <= last;
    const float my_score = visible ? score(mine) : -INFINITY;
    float highest = fmaxf(part.highest, my_score);
    for (int offset = 16; offset > 0; offset /= 2) {
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, offset));
    }
    if (highest == -INFINITY) return;
    const float keep = exp2_approx(__fsub_rn(part.highest, highest));
    const float my_weight = visible ? exp2_approx(__fsub_rn(my_score, highest)) : 0.0f;
    float sum = my_weight;
    for (int offset = 16; offset > 0; offset /= 2) {
      sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, offset));
    }
    part.weights = fmaf(part.weights, keep, sum);
    part.highest = highest;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) part.values[i] = __fmul_rn(part.values[i], keep);
    for (int j = max(0, first - begin); j < 32 && begin + j <= last; ++j) {
      const float weight = __shfl_sync(0xffffffffu, my_weight, j);
      const Entry<T, Format> value = entry(args.kv.v, begin + j);
#pragma unroll
      for (int i = 0; i < PerLane; ++i) {
        const int d = lane + i * 32;
        if (d < value_dim) part.values[i] = fmaf(weight, value[d], part.values[i]);
      }
    }
  }

  __device__ Partial<PerLane> split(int index) const {
    Partial<PerLane> part;
    const int first = max(first_visible(args, position), AttentionSplits::begin(index));
    const int last = min(last_kv, AttentionSplits::begin(index + 1) - 1);
    // Positions are taken 32 at a time from multiples of 32 on.
    for (int begin = first / 32 * 32; begin <= last; begin += 32) {
      add_positions(part, begin, first, last);
    }
    return part;
  }
};

template <int PerLane>
__device__ void merge_into(Partial<PerLane>& running, const Partial<PerLane>& partial) {
  const MergeScales scales = merge_scales(running.highest, partial.highest);
  running.highest = scales.highest;
  running.weights = merge(running.weights, partial.weights, scales);
#pragma unroll
  for (int i = 0; i < PerLane; ++i) {
    running.values[i] = merge(running.values[i], partial.values[i], scales);
  }
}

// Block (row, group of kWarps heads, part): a warp takes splits part, part + num_parts, ...
template <class T, int PerLane, KvFormat Format>
__global__ void __launch_bounds__(kWarps * 32)
    attention_plain_kernel(AttentionArgs args, AttentionSchedule schedule) {
  __shared__ float q_shared[kWarps][PerLane * 32];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int head = blockIdx.y * kWarps + warp;
  if (row >= args.counts->num_rows || head >= args.num_heads) return;
  const int dim = args.kv.head_dim;
  const int value_dim = args.kv.value_size();
  const int64_t at = int64_t{row} * args.num_heads + head;
  for (int d = lane; d < dim; d += 32) {
    q_shared[warp][d] = to_float(static_cast<const T*>(args.q)[at * dim + d]);
  }
  __syncwarp();
  const int position = args.positions[row];
  const int kv_head = head / (args.num_heads / args.kv.num_kv_heads);
  const int last_kv = last_seen(args, row, position);
  const float of_keys =
      Format == KvFormat::kFp8 ? key_scale(args.kv, head_of_scales(args, row, kv_head)) : 1.0f;
  const WarpAttention<T, PerLane, Format> attend{
      args,    scoring_of(args), q_shared[warp], args.row_slot[row],   head,
      kv_head, position,         last_kv,        slope_of(args, head), of_keys};
  const int first = AttentionSplits::of(first_visible(args, position));
  const int last = AttentionSplits::of(last_kv);
  Partial<PerLane> running;
  for (int split = first + blockIdx.z; split <= last; split += schedule.num_parts) {
    const Partial<PerLane> partial = attend.split(split);
    if (schedule.num_parts == 1) {
      merge_into(running, partial);
      continue;
    }
    const int64_t index = partial_index(args, schedule.max_splits, row, head, split);
    if (lane == 0) {
      *partial_state(args, schedule.max_splits, index) =
          make_float2(partial.highest, partial.weights);
    }
#pragma unroll
    for (int i = 0; i < PerLane; ++i) {
      if (lane + i * 32 < value_dim) partial_values(args, index)[lane + i * 32] = partial.values[i];
    }
  }
  if (schedule.num_parts > 1) return;
  const float weights = with_sink(args, head, running.highest, running.weights);
#pragma unroll
  for (int i = 0; i < PerLane; ++i) {
    const int d = lane + i * 32;
    if (d >= value_dim) break;
    static_cast<T*>(args.out)[at * value_dim + d] =
        from_float<T>(scaled(args, row, kv_head, normalized(running.values[i], weights)));
  }
}

template <int PerLane, KvFormat Format>
auto kernel_for(DType dtype) {
  return dtype == DType::kBF16 ? attention_plain_kernel<__nv_bfloat16, PerLane, Format>
                               : attention_plain_kernel<float, PerLane, Format>;
}

template <int PerLane>
void launch(const AttentionArgs& args, AttentionSchedule schedule, cudaStream_t stream) {
  const auto kernel =
      args.kv.format == KvFormat::kFp8    ? kernel_for<PerLane, KvFormat::kFp8>(args.kv.dtype)
      : args.kv.format == KvFormat::kInt8 ? kernel_for<PerLane, KvFormat::kInt8>(args.kv.dtype)
                                          : kernel_for<PerLane, KvFormat::kPlain>(args.kv.dtype);
  const dim3 grid(args.max_rows, ceil_div(args.num_heads, kWarps), schedule.num_parts);
  launch_kernel(kernel, grid, kWarps * 32, 0, stream, args, schedule);
}

}  // namespace

void launch_attention_plain(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream) {
  if (args.kv.head_dim <= kMaxHeadDim / 2) {
    launch<kMaxHeadDim / 64>(args, schedule, stream);
  } else {
    launch<kMaxHeadDim / 32>(args, schedule, stream);
  }
}

}  // namespace foretoken::cuda
