#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"

// Slots that follow a sequence with other drafts than its own (BranchState).

namespace foretoken {

FT_HD inline int32_t first_branch(const BatchState& batch) {
  return batch.num_slots - batch.num_branches;
}

FT_HD inline bool is_branch(const BatchState& batch, int32_t slot) {
  return slot >= first_branch(batch) && slot < batch.num_slots;
}

// The slot that has the known tokens and the lists of a slot.
FT_HD inline int32_t text_slot(const BatchState& batch, int32_t slot) {
  return is_branch(batch, slot) ? batch.slots[slot].branch.leader : slot;
}

// Whether a branch belongs to the drafts that its leader has now.
FT_HD inline bool follows(const BatchState& batch, int32_t branch) {
  const BranchState& state = batch.slots[branch].branch;
  return state.stamp != 0 && batch.slots[state.leader].branch.stamp == state.stamp;
}

// The first block of a table that is a branch's own: the one that holds its last known token.
FT_HD inline int32_t first_own_index(const BatchState& batch, int32_t branch) {
  return (batch.slots[branch].len - 1) / batch.block_size;
}

// The block of that number, from 0, among a branch's own ones of a group.
FT_HD inline int32_t own_block(const BatchState& batch, int32_t branch, int32_t number,
                               bool windowed) {
  const int32_t first = windowed ? batch.first_branch_window_block : batch.first_branch_block;
  return first + (branch - first_branch(batch)) * batch.branch_blocks + number;
}

// Whether drafts of the slot may have branches: the masks of a grammar are of one continuation
// alone, and what attention asks a request (SlotLists::flex) is found by the request's own slot.
FT_HD inline bool may_branch(const SlotParams& params) {
  return params.grammar == 0 && params.num_flex_words == 0;
}

}  // namespace foretoken
