#include "kernels/sampling/token_masks.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft_entries.h"
#include "kernels/logits_row.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowBlocks = 16;  // blocks that share a row
constexpr unsigned kPollNs = 200;

__device__ uint64_t acquire(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

__device__ void release(uint64_t* word, uint64_t value) {
  __threadfence_system();
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ void post_span(const ExportSpansArgs& args, const SpanState& span, int num_draft_tokens,
                          MaskSpan& out) {
  const BatchState& batch = args.batch;
  const SlotState& state = batch.slots[span.slot];
  const SlotParams& params = batch.params[span.slot];
  out.grammar = params.grammar;
  out.len = state.len;
  out.num_repaired = args.num_repaired > 0 ? num_repaired(state, args.num_repaired) : 0;
  const int num_tail = mask_tail(state.len - params.prompt_len, args.exchange.rows_each);
  out.num_tail = num_tail;
  for (int i = 0; i < num_tail; ++i) {
    out.tail[i] = history_id(batch, span.slot, state.len - num_tail + i);
  }
  out.num_draft_tokens = num_draft_tokens;
  for (int i = 0; i < num_draft_tokens; ++i) out.drafts[i] = state.drafts[i];
}

// One block; a thread for each span.
__global__ void __launch_bounds__(kThreads) export_kernel(ExportSpansArgs args) {
  wait_for_previous();
  let_next_start();
  const MaskExchange& x = args.exchange;
  const uint64_t ticket = args.ticket->next;
  __shared__ int has_room;
  if (threadIdx.x == 0) {
    const bool resting = args.num_repaired > 0 && acquire(x.resting) != 0;
    has_room = acquire(x.taken) + kMaskRing > ticket && !resting ? 1 : 0;
  }
  __syncthreads();
  const int num_spans = args.counts->num_spans;
  MaskSpan* to = x.spans + static_cast<int64_t>(ticket % kMaskRing) * x.max_spans;
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    const SpanState span = args.spans[i];
    const bool wanted = wants_masks(args.batch, span, args.drafter, args.num_repaired);
    SlotState& state = args.batch.slots[span.slot];
    const int num_draft_tokens =
        args.drafter == kVerifying ? span.num_draft_tokens : state.num_draft_tokens;
    if (has_room != 0 && wanted) post_span(args, span, num_draft_tokens, to[i]);
    if (has_room != 0 && !wanted) to[i].grammar = to[i].num_repaired = 0;
    if (!wanted) continue;
    state.mask_begin = i * x.rows_each;
    state.num_masks = state.num_decided = 0;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0) return;
  *args.ticket = {ticket + 1, has_room, args.ticket->num_late};
  if (has_room != 0) {
    x.num_spans[ticket % kMaskRing] = num_spans;
    release(x.posted, ticket + 1);
  }
  release(x.passed, ticket + 1);
}

// One block, whose first thread polls.
__global__ void __launch_bounds__(kThreads) await_kernel(AwaitMasksArgs args) {
  wait_for_previous();
  let_next_start();
  if (args.ticket->posted == 0) return;
  const MaskExchange& x = args.exchange;
  const uint64_t ticket = args.ticket->next - 1;
  if (threadIdx.x == 0) {
    const bool verifies = args.drafter == kVerifying;
    const int64_t wait =
        verifies ? mask_wait_ns(args.budget_ns, args.ticket->num_late) : args.budget_ns;
    const int64_t deadline = global_nanoseconds() + wait;
    while (acquire(x.answered) <= ticket && global_nanoseconds() < deadline) {
      __nanosleep(kPollNs);
    }
    if (verifies) {
      args.ticket->num_late = acquire(x.answered) > ticket ? 0 : args.ticket->num_late + 1;
    }
  }
  __syncthreads();
  const uint64_t* answers = x.answers + static_cast<int64_t>(ticket % kMaskRing) * x.max_spans;
  for (int i = threadIdx.x; i < args.counts->num_spans; i += kThreads) {
    const SpanState span = args.spans[i];
    if (!has_sampled(span) || args.params[span.slot].grammar == 0) continue;
    const MaskAnswer answer = mask_answer(acquire(answers + i), ticket);
    SlotState& state = args.slots[span.slot];
    if (args.repairs != 0 && answer.num_decided > 0) {
      state.num_draft_tokens = answer.num_decided - 1;
      const int32_t* drafts = x.repairs + int64_t{i} * kMaxDraftTokens;
      for (int d = 0; d < state.num_draft_tokens; ++d) state.drafts[d] = __ldcv(drafts + d);
    }
    state.num_masks = answer.num_masks;
    state.num_decided = answer.num_decided;
  }
}

// kRowBlocks blocks: one row. The host wrote the masks since the device last saw them: no cached
// loads.
__global__ void __launch_bounds__(kThreads) apply_kernel(ApplyMasksArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.y;
  if (i >= live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const LogitsRow at = logits_row(args.tensors, args.slots, args.row_offset + i);
  const SlotState& state = args.slots[at.slot];
  const int row = at.position - (state.len - 1);
  if (at.scored || args.params[at.slot].grammar == 0 || row >= state.num_masks) return;
  const uint32_t* mask = args.masks + int64_t{state.mask_begin + row} * args.mask_words;
  float* logits = args.logits + int64_t{i} * args.vocab;
  const int lane = threadIdx.x % 32;
  const int first = (blockIdx.x * kThreads + threadIdx.x) / 32;
  // A warp takes 32 words at a time, so that the bus carries whole lines.
  for (int begin = first * 32; begin < args.mask_words; begin += kRowBlocks * kThreads) {
    const int own = begin + lane;
    const uint32_t allowed = own < args.mask_words ? __ldcv(mask + own) : ~0u;
    for (int w = 0; w < 32; ++w) {
      const uint32_t word = __shfl_sync(~0u, allowed, w);
      const int id = (begin + w) * 32 + lane;
      if (id < args.vocab && (word >> lane & 1u) == 0) logits[id] = -INFINITY;
    }
  }
}

}  // namespace

void launch_export_spans(const void* packed, cudaStream_t stream) {
  launch_kernel(export_kernel, 1, kThreads, 0, stream, op_args<ExportSpansArgs>(packed));
}

void launch_await_masks(const void* packed, cudaStream_t stream) {
  launch_kernel(await_kernel, 1, kThreads, 0, stream, op_args<AwaitMasksArgs>(packed));
}

void launch_apply_masks(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ApplyMasksArgs>(packed);
  launch_kernel(apply_kernel, dim3(kRowBlocks, args.max_rows), kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
