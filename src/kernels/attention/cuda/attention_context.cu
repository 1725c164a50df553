#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/attention/cuda/kv_codes.cuh"

// Attention over one rank's share of the positions of a sequence, which leaves states for
// merge_partials. A warp has a few query heads of one KV head and takes entries one after the
// other, so that each is read once for all of them; which warp takes an entry depends on the entry
// alone, and the warps' results are folded in their order, so that bits depend on the row alone.
namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kHeads = 4;  // of a block
// Entries that a warp takes before the next warp has its turn.
constexpr int kTurn = 8;
constexpr float kLn2 = 0.693147180559945309f;

// Of all dimensions a lane has lane, lane + 32, ...
template <int PerLane>
struct HeadState {
  float highest = -INFINITY;
  float weights = 0;
  float values[PerLane] = {};
};

template <class T, int PerLane, KvFormat Format>
__device__ void load_entry(const KvLayer& kv, const void* cache, int64_t index, int dim,
                           float (&out)[PerLane]) {
  const int lane = threadIdx.x % 32;
  const auto* bytes = static_cast<const uint8_t*>(cache) + index * kv_entry_bytes(kv);
#pragma unroll
  for (int i = 0; i < PerLane; ++i) {
    const int d = lane + i * 32;
    out[i] = d < dim ? entry_value<T, Format>(kv, bytes, d) : 0.0f;
  }
}

template <int PerLane>
__device__ float dot_of(const float (&q)[PerLane], const float (&key)[PerLane]) {
  float dot = 0;
#pragma unroll
  for (int i = 0; i < PerLane; ++i) dot = fmaf(q[i], key[i], dot);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    dot = __fadd_rn(dot, __shfl_xor_sync(0xffffffffu, dot, offset));
  }
  return dot;
}

// The whole warp has the same score.
template <int PerLane>
__device__ void add_value(HeadState<PerLane>& state, float score, const float (&value)[PerLane]) {
  if (score > state.highest) {
    const float keep = exp2_approx(__fsub_rn(state.highest, score));
    state.highest = score;
    state.weights = __fmul_rn(state.weights, keep);
#pragma unroll
    for (int i = 0; i < PerLane; ++i) state.values[i] = __fmul_rn(state.values[i], keep);
  }
  if (state.highest == -INFINITY) return;
  const float weight = exp2_approx(__fsub_rn(score, state.highest));
  state.weights = __fadd_rn(state.weights, weight);
#pragma unroll
  for (int i = 0; i < PerLane; ++i) state.values[i] = fmaf(weight, value[i], state.values[i]);
}

// A warp's states of the heads of its block.
template <int PerLane>
struct Share {
  float highest[kHeads];
  float weights[kHeads];
  float values[kHeads][PerLane * 32];
};

template <int PerLane>
__device__ void write_state(const AttentionArgs& args, const Share<PerLane>* shares, int row,
                            int head, int h) {
  float highest = -INFINITY, weights = 0;
  for (int w = 0; w < kWarps; ++w) {
    const MergeScales scales = merge_scales(highest, shares[w].highest[h]);
    highest = scales.highest;
    weights = merge(weights, shares[w].weights[h], scales);
  }
  const int size = args.kv.value_size();
  float* to = attention_state(args, row, head);
  for (int d = threadIdx.x; d < size; d += kThreads) {
    float most = -INFINITY, value = 0;
    for (int w = 0; w < kWarps; ++w) {
      const MergeScales scales = merge_scales(most, shares[w].highest[h]);
      most = scales.highest;
      value = merge(value, shares[w].values[h][d], scales);
    }
    to[d] = scaled(args, row, kv_head_of(args, head), value);
  }
  if (threadIdx.x > 0) return;
  to[size] = __fmul_rn(highest, kLn2);
  to[size + 1] = weights;
}

// Of query heads [first, first + heads) of a row; behind them the last one again.
template <class T, int PerLane>
__device__ void load_heads(const AttentionArgs& args, int row, int first, int heads,
                           float (&q)[kHeads][PerLane], float (&slopes)[kHeads]) {
  const int lane = threadIdx.x % 32, dim = args.kv.head_dim;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int head = first + min(h, heads - 1);
    slopes[h] = slope_of(args, head);
    const T* from = static_cast<const T*>(args.q) + (int64_t{row} * args.num_heads + head) * dim;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) {
      const int d = lane + i * 32;
      q[h][i] = d < dim ? to_float(from[d]) : 0.0f;
    }
  }
}

// Block (row, kHeads heads of one KV head).
template <class T, int PerLane, KvFormat Format>
__global__ void __launch_bounds__(kThreads) attention_context_kernel(AttentionArgs args) {
  __shared__ Share<PerLane> shares[kWarps];
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const KvLayer& kv = args.kv;
  const int of_kv_head = args.num_heads / kv.num_kv_heads;
  const int blocks_of_kv_head = ceil_div(of_kv_head, kHeads);
  const int kv_head = blockIdx.y / blocks_of_kv_head;
  const int first = kv_head * of_kv_head + blockIdx.y % blocks_of_kv_head * kHeads;
  const int heads = min(kHeads, (kv_head + 1) * of_kv_head - first);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float q[kHeads][PerLane];
  float slopes[kHeads];
  load_heads<T>(args, row, first, heads, q, slopes);
  const Scoring scoring = scoring_of(args);
  const float of_keys =
      Format == KvFormat::kFp8 ? key_scale(kv, head_of_scales(args, row, kv_head)) : 1.0f;
  const int position = args.positions[row];
  const int begin = entries_before(kv, first_visible(args, position));
  const int end = entries_before(kv, last_seen(args, row, position) + 1);
  HeadState<PerLane> states[kHeads];
  for (int turn = begin / kTurn; turn * kTurn < end; ++turn) {
    if (turn % kWarps != warp) continue;
    for (int e = max(begin, turn * kTurn); e < min(end, (turn + 1) * kTurn); ++e) {
      const int64_t index = kv_entry(args, args.row_slot[row], e, kv_head);
      const int distance = position_of_entry(kv, e) - position;
      float key[PerLane], value[PerLane];
      load_entry<T, PerLane, Format>(kv, kv.k, index, kv.head_dim, key);
      if (kv.value_dim == 0) load_entry<T, PerLane, Format>(kv, kv.v, index, kv.head_dim, value);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float dot = dot_of(q[h], key);
        if (Format == KvFormat::kFp8) dot = __fmul_rn(dot, of_keys);
        float score = __fmul_rn(scoring.capped ? capped(scoring, dot) : dot, scoring.scale);
        score = with_distance(args, first + min(h, heads - 1), slopes[h], distance, score);
        kv.value_dim == 0 ? add_value(states[h], score, value) : add_value(states[h], score, key);
      }
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane == 0) shares[warp].highest[h] = states[h].highest;
    if (lane == 0) shares[warp].weights[h] = states[h].weights;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) shares[warp].values[h][lane + i * 32] = states[h].values[i];
  }
  __syncthreads();
  for (int h = 0; h < heads; ++h) write_state(args, shares, row, first + h, h);
}

template <int PerLane, KvFormat Format>
auto kernel_for(DType dtype) {
  return dtype == DType::kF32 ? attention_context_kernel<float, PerLane, Format>
                              : attention_context_kernel<__nv_bfloat16, PerLane, Format>;
}

template <int PerLane>
void launch(const AttentionArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.kv.format == KvFormat::kFp8    ? kernel_for<PerLane, KvFormat::kFp8>(args.kv.dtype)
      : args.kv.format == KvFormat::kInt8 ? kernel_for<PerLane, KvFormat::kInt8>(args.kv.dtype)
                                          : kernel_for<PerLane, KvFormat::kPlain>(args.kv.dtype);
  const int groups = args.kv.num_kv_heads * ceil_div(args.num_heads / args.kv.num_kv_heads, kHeads);
  launch_kernel(kernel, dim3(args.max_rows, groups), kThreads, 0, stream, args);
}

}  // namespace

void launch_attention_context(const AttentionArgs& args, cudaStream_t stream) {
  if (args.kv.head_dim <= 128) {
    launch<4>(args, stream);
  } else if (args.kv.head_dim <= 256) {
    launch<8>(args, stream);
  } else {
    launch<kMaxHeadDim / 32>(args, stream);
  }
}

}  // namespace foretoken::cuda
