#include "kernels/commit.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_math.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 64;

__device__ bool is_stop(const SlotParams& params, int32_t id) {
  for (int i = 0; i < params.num_stop_ids; ++i) {
    if (params.stop_ids[i] == id) return true;
  }
  return false;
}

// Drafts up to the first that the rule does not accept.
__device__ int accepted_drafts(const CommitArgs& args, const SpanState& span,
                               const int32_t* sampled) {
  const SlotState& slot = args.batch.slots[span.slot];
  const SlotParams& params = args.batch.params[span.slot];
  const auto accepts = [&](int i) {
    if (args.synthetic == nullptr) return sampled[i] == slot.drafts[i];
    return draft_math::coin_accepts(args.synthetic[i], slot.len + i, params);
  };
  const int most = num_verified(span, params, slot);
  int accepted = 0;
  while (accepted < most && accepts(accepted)) ++accepted;
  return accepted;
}

// Appends the accepted drafts and the id sampled behind them until one of them ends the sequence;
// stop wins over length.
__device__ void append_ids(const CommitArgs& args, const SpanState& span, SpanResult& result) {
  SlotState& slot = args.batch.slots[span.slot];
  const SlotParams& params = args.batch.params[span.slot];
  const int32_t* sampled = args.tensors.sampled + span.logits_begin + span.num_scored;
  const int accepted = accepted_drafts(args, span, sampled);
  const bool drops_last =
      args.drop_bonus != 0 && span.num_drafts > 0 && accepted == span.num_drafts;
  const int last = min(accepted - (drops_last ? 1 : 0), num_decided(span, params, slot) - 1);
  DeviceFinish finish = DeviceFinish::kNone;
  int committed = 0;
  while (committed <= last && finish == DeviceFinish::kNone) {
    const int32_t id = committed < accepted ? slot.drafts[committed] : sampled[committed];
    if (id < 0) {
      finish = DeviceFinish::kError;
      break;
    }
    append_token(args.batch, span.slot, slot.len + committed, id);
    result.ids[committed++] = id;
    if (is_stop(params, id)) {
      finish = DeviceFinish::kStop;
    } else if (slot.len + committed >= params.max_len) {
      finish = DeviceFinish::kLength;
    }
  }
  slot.len += committed;
  slot.computed = slot.len - 1;
  slot.num_drafts = 0;
  slot.finished = static_cast<int32_t>(finish);
  result.num_committed = committed;
  result.num_accepted = min(accepted, committed);
  result.finish = static_cast<int32_t>(finish);
}

// The drafter's entries of accepted drafts become exact.
__device__ void keep_entries(const BatchState& batch, const SpanResult& result) {
  SlotState& slot = batch.slots[result.slot];
  DraftState& draft = slot.draft;
  const int exact = min(draft.written, slot.len - 1);
  if (exact > draft.computed) {
    raise_draft_counts(batch, result.slot, batch.params[result.slot].drafter, draft.computed,
                       exact);
    draft.computed = exact;
  }
  draft.written = 0;
  draft.since_draft =
      draft_math::since_draft_after(draft.since_draft, result.num_drafted, result.num_committed);
}

// A span without a sampling row. One that pools ends with its last prompt token.
__device__ void advance(const BatchState& batch, const SpanState& span, SpanResult& result) {
  SlotState& slot = batch.slots[span.slot];
  slot.computed += span.num_rows;
  const bool pools = batch.params[span.slot].pooling != static_cast<int32_t>(DevicePooling::kNone);
  if (!pools || span.num_rows == 0 || slot.computed < slot.len) return;
  slot.finished = static_cast<int32_t>(DeviceFinish::kStop);
  result.finish = slot.finished;
}

// One thread: one span.
__global__ void __launch_bounds__(kThreads) commit_kernel(CommitArgs args) {
  wait_for_previous();
  let_next_start();
  const StepCounts counts = *args.tensors.counts;
  const ResultView out = result_view(args.result, args.result_limits);
  const int index = blockIdx.x * kThreads + threadIdx.x;
  if (index == 0) {
    const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
    *out.header =
        ResultHeader{plan.header->step, counts.num_spans, counts.num_rows, counts.num_logits_rows};
  }
  if (index >= counts.num_spans) return;
  const SpanState span = args.tensors.spans[index];
  SpanResult& result = out.spans[index];
  result.slot = span.slot;
  result.num_committed = 0;
  result.num_drafted = 0;
  result.from_prediction = 0;
  result.num_accepted = 0;
  result.finish = static_cast<int32_t>(DeviceFinish::kNone);
  result.logits_begin = span.logits_begin;
  result.num_scored = span.num_scored;
  const SlotState& slot = args.batch.slots[span.slot];
  if (has_sampled(span)) {
    result.num_drafted = num_verified(span, args.batch.params[span.slot], slot);
    for (int i = 0; i < result.num_drafted; ++i) result.drafts[i] = slot.drafts[i];
    result.from_prediction = slot.from_prediction;
    append_ids(args, span, result);
    keep_entries(args.batch, result);
  } else {
    advance(args.batch, span, result);
  }
  result.draft_missing = max(0, known_after(span, slot) - slot.draft.computed);
}

}  // namespace

void launch_commit(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CommitArgs>(packed);
  launch_kernel(commit_kernel, ceil_div(args.limits.max_spans, kThreads), kThreads, 0, stream,
                args);
}

}  // namespace foretoken::cuda
