#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Between the drafts of a block whose logits depend on the drafts before (the Markov head of
// DSpark, DeepSeek-AI 2026). The block's logits rows of a slot lie side by side; the one whose
// `before` is len - 1 is of the slot's first draft; the token row `lead` before its own has the
// last known token. First the ids of draft `draft` - 1 are taken: for the slots that wanted it, in
// order, i = 0, 1,
// ..: sampled[row of that draft] = drawn[i], or id_map[drawn[i]] with a map; where that is negative
// or confidence[i] < least, the slot wants no draft from that one on (draft.num_draft_tokens =
// draft - 1). Then rows for draft `draft`
// are laid out for the slots that want it, in order: ids = the draft before, or for draft 0 the
// last known token; from = the block's logits row; positions = before of it; row_slot; logits_rows
// = the row itself. counts are set; rows beyond, up to max_out, are padding of slot num_slots.
struct DraftChainArgs {
  static constexpr Op kOp = Op::kDraftChain;
  SlotState* slots;
  // Of the block.
  const StepCounts* counts;
  const int32_t* logits_rows;
  const int32_t* row_slot;
  const int32_t* before;
  const int32_t* token_ids;
  int32_t* sampled;  // [max_rows] by logits row
  // Of the draft before.
  const int32_t* drawn;     // [max_out]; null for draft 0
  const float* confidence;  // [max_out] or null
  const int32_t* id_map;    // target id of what is drawn; null: the same
  // Of this one.
  StepCounts* out_counts;
  int32_t* out_ids;
  int32_t* out_from;
  int32_t* out_positions;
  int32_t* out_slot;
  int32_t* out_logits_rows;
  float least;
  int32_t draft;
  int32_t num_slots;
  int32_t max_rows;  // of the block's logits
  int32_t max_out;   // at least the slots that draft
  int32_t lead = 0;  // 0 or 1: the block's first row drafts, too, or it does not
};

void draft_chain(Queue& queue, const DraftChainArgs& args);

}  // namespace foretoken
