#include "kernels/attention/attention.h"

#include <algorithm>

#include "kernels/attention/cuda/attention_fa3.cuh"
#include "kernels/attention/cuda/attention_flex.cuh"
#include "kernels/attention/cuda/attention_partials.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kMergeThreads = 128;
constexpr int kMergeAtOnce = 256;  // splits whose scores wait in shared memory
constexpr int kLoadsAtOnce = 16;
constexpr int kBlocksPerSm = 8;  // wanted at least, where there are splits to share

bool is_portable(AttentionFamily family) {
  return family == AttentionFamily::kPortable || family == AttentionFamily::kFlex;
}

// Distances are known to the plain kernel alone.
bool uses_tensor_cores(const AttentionArgs& args) {
  const KvLayer& kv = args.kv;
  if (kv.value_dim > 0 || weighs_distances(args)) return false;
  switch (kv.head_dim) {
    case 64:
    case 80:
    case 96:
    case 112:
    case 128:
    case 192:
    case 256:
      return kv.dtype == DType::kBF16;
    default:
      return false;
  }
}

AttentionSchedule choose_schedule(const AttentionArgs& args) {
  const int max_splits = splits_bound(args);
  const int64_t floats =
      int64_t{args.max_rows} * args.num_heads * max_splits * (args.kv.value_size() + 2);
  // Rows of one sequence share blocks; the host does not know how many there are of each.
  const int tokens = uses_tensor_cores(args) ? attention_short_tokens(args) : 1;
  const int blocks = ceil_div(args.max_rows, tokens) * args.kv.num_kv_heads;
  const int wanted = kBlocksPerSm * device_traits().num_sms / std::max(blocks, 1);
  // More blocks than splits that a row sees would only start and end.
  const int reach = args.window > 0 && args.chunk > 0 ? std::min(args.window, args.chunk)
                                                      : std::max(args.window, args.chunk);
  const int seen = reach > 0 ? ceil_div(reach - 1, kAttentionSplit) + 1 : max_splits;
  if (args.workspace == nullptr || floats > args.workspace_floats) return {1, max_splits};
  return {std::clamp(wanted, 1, std::min(seen, max_splits)), max_splits};
}

// One block: one row and query head. The scores of the splits come first, so that the loads of the
// values do not wait for each other; every thread then merges in order, PerThread dimensions at
// most.
template <class T, int PerThread>
__global__ void __launch_bounds__(kMergeThreads)
    attention_merge_kernel(AttentionArgs args, int max_splits, bool short_runs_only) {
  __shared__ float2 states[kMergeAtOnce];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  const int head = blockIdx.y;
  const int live = min(args.counts->num_rows, args.max_rows);
  if (row >= live || (short_runs_only && in_long_run(args, row, live))) return;
  const int position = args.positions[row];
  const int first = AttentionSplits::of(first_visible(args, position));
  const int last = AttentionSplits::of(last_seen(args, row, position));
  const int dim = args.kv.value_size();
  float highest = -INFINITY;
  float weights = 0;
  float values[PerThread] = {};
  for (int begin = first; begin <= last; begin += kMergeAtOnce) {
    const int count = min(kMergeAtOnce, last + 1 - begin);
    const int64_t index = partial_index(args, max_splits, row, head, begin);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kMergeThreads) {
      states[i] = partial_state(args, max_splits, index)[i];
    }
    __syncthreads();
    for (int i = 0; i < count; i += kLoadsAtOnce) {
      float loaded[kLoadsAtOnce][PerThread];
#pragma unroll
      for (int l = 0; l < kLoadsAtOnce; ++l) {
        const float* from = partial_values(args, index + min(i + l, count - 1));
#pragma unroll
        for (int j = 0; j < PerThread; ++j) {
          const int d = threadIdx.x + j * kMergeThreads;
          loaded[l][j] = d < dim ? from[d] : 0.0f;
        }
      }
#pragma unroll
      for (int l = 0; l < kLoadsAtOnce; ++l) {
        if (i + l >= count) break;
        const MergeScales scales = merge_scales(highest, states[i + l].x);
        highest = scales.highest;
        weights = merge(weights, states[i + l].y, scales);
#pragma unroll
        for (int j = 0; j < PerThread; ++j) values[j] = merge(values[j], loaded[l][j], scales);
      }
    }
  }
  T* out = static_cast<T*>(args.out) + (int64_t{row} * args.num_heads + head) * dim;
  weights = with_sink(args, head, highest, weights);
  const int kv_head = kv_head_of(args, head);
  for (int j = 0; j < PerThread; ++j) {
    const int d = threadIdx.x + j * kMergeThreads;
    if (d < dim) out[d] = from_float<T>(scaled(args, row, kv_head, normalized(values[j], weights)));
  }
}

template <int PerThread>
void launch_merge(const AttentionArgs& args, AttentionSchedule schedule, cudaStream_t stream) {
  const auto kernel = args.kv.dtype == DType::kBF16
                          ? attention_merge_kernel<__nv_bfloat16, PerThread>
                          : attention_merge_kernel<float, PerThread>;
  launch_kernel(kernel, dim3(args.max_rows, args.num_heads), kMergeThreads, 0, stream, args,
                schedule.max_splits, args.flex == nullptr && uses_tensor_cores(args));
}

}  // namespace

bool has_attention_family(AttentionFamily family) {
  switch (family) {
    case AttentionFamily::kFlash:
      return device_traits().wgmma;
    case AttentionFamily::kFlashInfer:
      return has_attention_fa3();
    case AttentionFamily::kPortable:
    case AttentionFamily::kFlex:
      return true;
    case AttentionFamily::kFlashMla:
    case AttentionFamily::kFlashInferMla:
    case AttentionFamily::kCutlassMla:
      return has_attention_library(family);
  }
  return false;
}

void launch_attention_merge(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream) {
  if (args.kv.value_size() <= 2 * kMergeThreads) {
    launch_merge<2>(args, schedule, stream);
  } else {
    launch_merge<ceil_div(kMaxHeadDim, kMergeThreads)>(args, schedule, stream);
  }
}

void launch_attention(const void* packed, cudaStream_t stream) {
  if (const auto& shared = op_args<AttentionArgs>(packed); shared.states != nullptr) {
    return shared.flex != nullptr ? launch_attention_flex(shared, stream)
                                  : launch_attention_context(shared, stream);
  }
  const AttentionArgs args = with_fa3_room(op_args<AttentionArgs>(packed));
  if (args.flex != nullptr) return launch_attention_flex(args, stream);
  if (launch_attention_library(args, stream)) return;
  const bool portable = is_portable(args.family);
  if (!portable &&
      (launch_attention_stream(args, stream) || launch_attention_latent(args, stream))) {
    return;
  }
  if (launch_attention_latent_mma(args, stream)) return;
  const bool tensor_cores = uses_tensor_cores(args);
  if (!tensor_cores && launch_attention_texts(args, stream)) return;
  AttentionSchedule schedule = choose_schedule(args);
  if (!portable && launch_attention_head(args, stream)) {
    schedule = {.num_parts = 1, .max_splits = schedule.max_splits, .first_end = kHeadRows};
  }
  if (tensor_cores) {
    launch_attention_short(args, schedule, stream);
  } else {
    launch_attention_plain(args, schedule, stream);
  }
  if (schedule.num_parts > 1) launch_attention_merge(args, schedule, stream);
  if (!tensor_cores || args.max_rows <= kLongRun) return;
  const LongCut whole{.overlaps = schedule.num_parts == 1};
  if (portable || !launch_attention_wgmma(args, whole, stream)) {
    launch_attention_long(args, stream);
  }
}

}  // namespace foretoken::cuda
