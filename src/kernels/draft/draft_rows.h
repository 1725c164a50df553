#pragma once
#include "device/queue.h"
#include "kernels/draft/draft_tensors.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9, first pass: the rows that bring a drafter's KV up to date. For each span of the plan
// whose slot drafts with `drafter`, in order:
//   end = the tokens whose ids are known after the commit: len when the span sampled (it had rows
//   of unscored logits), otherwise computed; at most `max_len`. A span that got no rows in this
//   step is passed over; one that ended in this step is not, so that its blocks are complete.
//   Exact entries from draft.computed on are found through draft_counts of the page headers, block
//   by block, at most to `end`, or len - 1 where the span sampled: another sequence of the same
//   blocks may have computed them. Entries before `first_entry` do not exist and count as exact.
//   n = min(end - computed, span.draft_rows, max_rows left) rows for entries computed ..
//   computed + n - 1: id = token_map[id] where a map is given; source = KV slot of the position
//   before, seen = that position. draft.computed += n, and draft_counts follow.
//   When the slot wants drafts (draft.num_draft_tokens > 0), sampled, has not ended and now has
//   computed == len, its last row wants logits. Otherwise draft.num_draft_tokens becomes 0.
// num_draft_tokens becomes 0 for every slot that was looked at. counts are set, num_spans to 0;
// rows up to max_rows beyond the live ones become harmless padding as in prepare, their source
// and seen 0. Those of entry 0 are 0 too.
//   With last_only the drafter has no entries: each slot that wants drafts, sampled, has not ended
// and is no longer than max_len gets one row, as above, for its last known token, whatever its
// span's draft_rows; draft.computed and draft_counts stay as they are.
struct DraftRowsArgs {
  static constexpr Op kOp = Op::kDraftRows;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  const SpanState* spans;  // of the step
  DraftTensors out;
  const int32_t* token_map;  // [target vocab] id of the drafter's vocabulary; null: the same ids
  int32_t drafter;
  int32_t first_entry;  // 0, or 1 where entry i pairs with the hidden state of position i - 1
  int32_t max_rows;
  int32_t max_len;  // positions that the drafter can compute
  int32_t last_only = 0;
  // 1: exact entries are not looked for in page headers, as each row changes a state as well, which
  // stands behind draft.computed.
  int32_t in_order = 0;
};

void draft_rows(Queue& queue, const DraftRowsArgs& args);

}  // namespace foretoken
