#pragma once
#include <cstdint>

#include "kernels/draft/draft_alternatives.h"
#include "kernels/step_types.h"

namespace foretoken {

// The rows of one pass of a drafter, in device memory. `rows` has the meaning of a target step's
// tensors (kernels/step_types.h) for what a model's forward reads: counts, token_ids, positions,
// row_slot, kv_slot and logits_rows; `rows.sampled` holds the drafted *target* ids by logits row.
// rows.spans and rows.window_slot are null. A row at position i computes the drafter's entry i.
struct DraftTensors {
  StepTensors rows;
  // [max_rows] where the hidden state that row r pairs with is found: in a catch-up the KV slot of
  // position i - 1 (rows of tap pages), in later passes the row of the pass before.
  int32_t* source;
  // [max_rows] the last position of the row's slot that the target has computed, or null: nobody
  // asks for it. In a catch-up position i - 1; all drafts behind len known tokens have len - 2.
  int32_t* seen = nullptr;
  // Where branches may begin, by logits row: the drafted id and others, and the slot that each
  // drafts for (branch_drafts); or null.
  DraftAlternative* alternatives = nullptr;  // [max_rows, kDraftAlternatives + 1]
  int32_t* slots = nullptr;                  // [max_rows]
};

}  // namespace foretoken
