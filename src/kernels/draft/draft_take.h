#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9 behind a pass that drafts several tokens at once: takes the drafted ids. Logits rows
// of a slot lie side by side, in order; the one whose `before` is len - 1 is of the slot's first
// draft. The slot, with n = draft.num_draft_tokens, gets drafts[i] = the id of its row i for i < n,
// up to the first that is negative (no valid draft); num_draft_tokens becomes how many there are,
// and draft.num_draft_tokens the same where an id was negative.
struct DraftTakeArgs {
  static constexpr Op kOp = Op::kDraftTake;
  BatchState batch;
  const StepCounts* counts;
  const int32_t* logits_rows;  // [max_rows] token row of each logits row
  const int32_t* row_slot;     // by token row
  const int32_t* before;       // by token row: the position before the one that it drafts
  const int32_t* sampled;      // [max_rows]
  int32_t max_rows;
};

void draft_take(Queue& queue, const DraftTakeArgs& args);

}  // namespace foretoken
