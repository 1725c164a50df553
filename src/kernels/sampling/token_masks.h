#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_lists.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaskRing = 32;       // tickets that the host may be behind with their masks
inline constexpr int kLeastMaskTail = 17;  // ids of an output that a span shows at least

// A span whose output has a grammar, on its way to the host. What one step commits always fits into
// the tail, so whoever sees all of a sequence's spans in order knows all of its ids.
struct MaskSpan {
  uint64_t grammar;  // SlotParams::grammar; 0: the span wants no masks
  int32_t len;       // known tokens at the start of the step
  int32_t num_tail;
  int32_t num_draft_tokens;
  int32_t
      num_repaired;  // drafts that the answer may hold: the ones below, repaired; 0: masks alone
  int32_t tail[kMaxDraftTokens + 1];  // the last num_tail known ids of the output
  int32_t drafts[kMaxDraftTokens];
  int32_t reserved;
};

// What the host answers for a span: masks of its first `num_masks` logits rows are there, and its
// first `num_decided` ones may be committed. A row behind a draft that the grammar forbids needs no
// mask, since nothing of it is committed.
struct MaskAnswer {
  int32_t num_masks;
  int32_t num_decided;
};

// An answer and the ticket that it is for, in a word that is written at once.
FT_HD inline uint64_t mask_answer_word(uint64_t ticket, MaskAnswer answer) {
  return (ticket + 1) << 16 | static_cast<uint64_t>(answer.num_masks) << 8 |
         static_cast<uint64_t>(answer.num_decided);
}
// Nothing where the word is for another ticket.
FT_HD inline MaskAnswer mask_answer(uint64_t word, uint64_t ticket) {
  if (word >> 16 != ((ticket + 1) & 0xffffffffffffu)) return {0, 0};
  return {static_cast<int32_t>(word >> 8 & 0xff), static_cast<int32_t>(word & 0xff)};
}

// Ids that a span of `output` known ids shows, where a step has `rows_each` logits rows of it at
// most.
FT_HD inline int32_t mask_tail(int32_t output, int32_t rows_each) {
  const int32_t shown = rows_each > kLeastMaskTail ? rows_each : kLeastMaskTail;
  return output < 0 ? 0 : output < shown ? output : shown;
}

// Pinned memory between the queue and the host. A step that holds grammars draws a ticket; entry
// ticket mod kMaskRing of `spans` and `answers` is its own. Masks lie by span and row: one set
// serves all tickets, because a row is read only where it was answered for the same ticket, and the
// host answers tickets in order.
struct MaskExchange {
  uint64_t* posted;    // the last ticket whose spans are posted, plus one; written by the queue
  uint64_t* passed;    // tickets drawn, written by the queue behind `posted`
  uint64_t* taken;     // the spans of tickets before it are of no use any more; written by the host
  uint64_t* answered;  // tickets that need not be waited for any more; written by the host
  int32_t* num_spans;  // [kMaskRing]
  MaskSpan* spans;     // [kMaskRing, max_spans] in the order of the plan
  uint64_t* answers;   // [kMaskRing, max_spans] mask_answer_word
  uint32_t* masks;     // [max_spans, rows_each, mask_words] bit i of a row: id i is allowed
  uint64_t* resting;   // not 0: drafts are not repaired at present; written by the host
  int32_t* repairs;    // [max_spans, kMaxDraftTokens] the first num_decided - 1 drafts, repaired
  int32_t max_spans;
  int32_t rows_each;   // logits rows of a span at most
  int32_t mask_words;  // ceil(vocab / 32)
};

// The queue's own record of tickets; device memory, zero at the start.
struct MaskTicket {
  uint64_t next;
  int32_t posted;    // 1: the spans of this step, ticket next - 1, are posted
  int32_t num_late;  // tickets in a row that had no answer in time
};

// How long to wait for a ticket behind `num_late` that were not answered in time: twice as long
// each time, so that a host whose cores are taken comes to its answer at last.
FT_HD inline int64_t mask_wait_ns(int64_t budget_ns, int32_t num_late) {
  constexpr int64_t kFirstNs = 20'000;
  constexpr int64_t kLongestNs = 10'000'000;
  int64_t wait = budget_ns;
  for (int32_t i = 0; i < num_late && wait < kLongestNs; ++i) {
    wait = wait < kFirstNs ? kFirstNs : wait * 2;
  }
  return wait;
}

inline constexpr int32_t kVerifying = -1;

// Posts the sampling spans whose slots have a grammar, and takes their masks of the ticket before
// back (SlotState::num_masks and num_decided become 0). Where the host is kMaskRing tickets behind
// nothing is posted, and these spans get no masks. Behind prepare (kVerifying) with the drafts that
// the step verifies; behind the commit, before each pass of a drafter, the slots for which it goes
// on drafting, with its drafts so far: their next one is drafted under the last mask of the answer,
// and the answers are what the next step wants again. With `num_repaired`, behind a drafter that
// proposed without masks: all its slots, for drafts as their grammars repair them; nothing is
// posted while the host rests.
struct ExportSpansArgs {
  static constexpr Op kOp = Op::kExportSpans;
  const StepCounts* counts;
  const SpanState* spans;
  BatchState batch;
  MaskExchange exchange;
  MaskTicket* ticket;
  int32_t drafter;       // or kVerifying
  int32_t num_repaired;  // most drafts of a slot; 0: none are repaired
};

// Drafts of the slot that its grammar may repair.
FT_HD inline int32_t num_repaired(const SlotState& state, int32_t most) {
  if (state.computed != state.len - 1 || state.draft.num_draft_tokens <= 0) return 0;
  return state.draft.num_draft_tokens < most ? state.draft.num_draft_tokens : most;
}

// Whether the span's masks are wanted.
FT_HD inline bool wants_masks(const BatchState& batch, const SpanState& span, int32_t drafter,
                              int32_t max_repaired) {
  const SlotParams& params = batch.params[span.slot];
  if (!has_sampled(span) || params.grammar == 0) return false;
  const SlotState& state = batch.slots[span.slot];
  if (drafter == kVerifying) return true;
  if (!serves(params, drafter) || state.finished != static_cast<int32_t>(DeviceFinish::kNone)) {
    return false;
  }
  return max_repaired > 0 ? num_repaired(state, max_repaired) > 0
                          : state.draft.num_draft_tokens > state.num_draft_tokens;
}

void export_spans(Queue& queue, const ExportSpansArgs& args);

// Before the logits: waits, inside the queue, until the step's ticket is answered or mask_wait_ns
// of the device's time have passed, and notes in the slots what was answered until then. While
// drafts are made (`drafter`, as it was exported) it waits no longer than `budget_ns`.
struct AwaitMasksArgs {
  static constexpr Op kOp = Op::kAwaitMasks;
  const StepCounts* counts;
  const SpanState* spans;
  SlotState* slots;
  const SlotParams* params;
  MaskExchange exchange;
  MaskTicket* ticket;
  int64_t budget_ns;
  int32_t drafter;  // or kVerifying
  int32_t
      repairs;  // 1: the ticket asked for repaired drafts, which take the place of the slots' own
};

void await_masks(Queue& queue, const AwaitMasksArgs& args);

// Last before sampling, in place: ids that a row's mask forbids become -inf. Scored rows, and rows
// without a mask, stay.
struct ApplyMasksArgs {
  static constexpr Op kOp = Op::kApplyMasks;
  float* logits;  // [max_rows, vocab]
  StepTensors tensors;
  const SlotState* slots;
  const SlotParams* params;
  const uint32_t* masks;  // MaskExchange::masks
  int32_t mask_words;     // of a row, at least ceil(vocab / 32)
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void apply_masks(Queue& queue, const ApplyMasksArgs& args);

}  // namespace foretoken
