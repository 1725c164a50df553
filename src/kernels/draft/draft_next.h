#pragma once
#include "device/queue.h"
#include "kernels/draft/draft_tensors.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9, after the logits of pass `pass` (from 0): takes the drafted ids and lays out the
// rows of the pass after it. For logits row j of the pass before (`in`) with slot s = slots[j] or,
// without those, the slot of its token row, and id =
// sampled[j]:
//   id < 0 (no valid draft): draft.num_draft_tokens = num_draft_tokens, and s has no further rows.
//   Otherwise drafts[pass] = id, num_draft_tokens = pass + 1; when draft.num_draft_tokens > pass +
//   1, a row of `out`: id = token_map[id] where a map is given, position = len + pass, source =
//   logits_rows[j], seen = len - 2, wanting logits; with keeps_written draft.written = len + pass
//   + 1.
// Rows of `out` keep the order of j. Padding as in draft_rows.
struct DraftNextArgs {
  static constexpr Op kOp = Op::kDraftNext;
  BatchState batch;
  // Of `in`.
  const StepCounts* counts;
  const int32_t* row_slot;
  const int32_t* logits_rows;
  const int32_t* sampled;
  DraftTensors out;  // memory apart from `in`
  const int32_t* token_map;
  int32_t pass;
  int32_t keeps_written;  // 1: entries of accepted drafts stay exact (they depend on ids alone)
  int32_t max_rows;       // of `out`, at least the logits rows of `in`
  const int32_t* slots = nullptr;  // by logits row of `in` (branch_drafts); or null
};

void draft_next(Queue& queue, const DraftNextArgs& args);

}  // namespace foretoken
