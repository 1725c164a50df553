#pragma once
#include "device/queue.h"
#include "kernels/draft/draft_tensors.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// The rows of one pass that drafts several tokens at once (block diffusion, Chen et al. 2026).
// Behind the catch-up, whose logits row j is the last known token of slot s, with
// n = draft.num_draft_tokens > 0: the slot gets `rows` rows, of that token at position
// len - 1 + first_entry and of mask_id behind it, side by side; fewer where the sequence ends
// before. (With first_entry 1 entry i stands for position i - 1, as in draft heads.) Rows
// first_drafting (0 or 1) .. first_drafting + n - 1 want logits. last_seen of each is the slot's
// last row, so that the rows of a block see one another. Rows keep the order of j, and so do logits
// rows. before[r] is the position before the one that row r drafts, which a sampler wants to know.
// The source of a slot's first row is the catch-up's row of that token, of the others mask_source.
// Padding as in draft_rows, last_seen and before 0.
struct DraftBlockArgs {
  static constexpr Op kOp = Op::kDraftBlock;
  BatchState batch;
  // Of the catch-up.
  const StepCounts* counts;
  const int32_t* token_ids;
  const int32_t* row_slot;
  const int32_t* logits_rows;
  DraftTensors out;    // memory apart from the catch-up's
  int32_t* last_seen;  // [max_rows]
  int32_t* before;     // [max_rows]
  int32_t mask_id;
  int16_t rows;
  int8_t first_drafting;
  int8_t first_entry;
  int32_t max_rows;  // of `out`, at least those of all slots
  int32_t mask_source = 0;
};

void draft_block(Queue& queue, const DraftBlockArgs& args);

// Rows of a slot whose sequence has `len` tokens.
FT_HD inline int32_t block_rows(const DraftBlockArgs& a, const SlotParams& params, int32_t len) {
  const int32_t room = params.max_len - (len - 1 + a.first_entry);
  return a.rows < room ? a.rows : room;
}

}  // namespace foretoken
