#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 2. Turns spans and slot states into the rows of the step, packed without gaps in span
// order. For a span of slot s, unless s is finished (then it gets no rows):
//   n = min(num_tokens, len - computed); rows for positions computed .. computed + n - 1 take their
//   ids from the token pages;
//   when computed + n == len: drafts d = min(num_draft_tokens, span.max_verified) add d rows with
//   positions len .. len + d - 1 and the drafts' ids, and the last known row and all draft rows
//   want logits; otherwise no row wants logits; with wants_all every row of known tokens wants
//   logits too, ahead of those above; the rows whose next token is known are counted in num_scored.
//   A pooling slot gets no drafts and no logits.
// kv_slot and window_slot come from the block tables. Rows from num_rows to max_rows become
// harmless padding: id 0, position 0, null slot, KV slot 0 (in the null block). Rows beyond
// max_rows or logits rows beyond max_logits_rows are a defect of the plan: the span gets no rows.
// With lane_rows > 0 the rows of the plan's first lane_spans spans are the first lane, and those of
// the others the second one; each is packed and padded, to lane_rows, for itself. A lane's counts
// stand behind the step's: its rows, and no logits rows, whose order is that of spans all the same.
// Up to the plan's num_branches branches (kernels/branches.h) of spans with drafts have spans
// behind those, each for the last known token and as many of its drafts as its leader's span may
// verify; of two lanes they are in the second.
struct PrepareArgs {
  static constexpr Op kOp = Op::kPrepare;
  void* plan;
  PlanLimits limits;
  BatchState batch;
  StepTensors tensors;
  int32_t max_rows;
  int32_t max_logits_rows;
  int32_t lane_rows = 0;    // at most, of each of two lanes; 0: there is one
  int32_t lane_offset = 0;  // where the second lane begins; at least lane_rows
};

void prepare(Queue& queue, const PrepareArgs& args);

}  // namespace foretoken
