#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/branches.h"
#include "kernels/draft/draft_alternatives.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9, between the logits of pass `pass` (from 0) and draft_next: lets branches begin. The
// pass has logits rows j of slots that draft, sequences' and those of branches that began before,
// with the drafted id alternatives[j][0] and others behind it. The chance of a row is that of its
// slot's drafts so far (BranchState::chance; before pass 0 kSureDraft) times the id's.
//   Of the first max_branches branches those that follow nobody's drafts (follows()) are free. From
//   the highest chance down, ties to the lowest j and then to the likelier id, alternatives of
//   slots that may_branch, whose chance is at least min_chance, each get the lowest free branch
//   while there is one. That slot becomes as its parent's is before this pass, with own blocks from
//   the one of the last known token on (first_own_index), and leader, parent, begin = pass and the
//   step's stamp; its leader gets the stamp, too. What lies in the blocks is copied behind this op
//   (copy_branches). Behind the pass's logits rows there is one more for each new branch, in the
//   order of branches: the token row of its parent, the alternative as `sampled`, and in `slots`
//   the branch; for those before `slots` is the slot of the row. counts->num_logits_rows counts
//   them.
// chance of each slot becomes that with its draft of this pass.
struct BranchDraftsArgs {
  static constexpr Op kOp = Op::kBranchDrafts;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  // Of the pass; these three grow by up to batch.num_branches logits rows.
  StepCounts* counts;
  int32_t* logits_rows;
  int32_t* sampled;
  const int32_t* row_slot;               // by token row
  const DraftAlternative* alternatives;  // [logits rows, kDraftAlternatives + 1]
  int32_t* slots;                        // [logits rows]
  int32_t pass;
  int32_t min_chance;
  int32_t max_branches;
  int32_t max_rows;  // logits rows that the lists have room for
};

// Chance of two things that both must be, in 1/kSureDraft.
FT_HD inline int32_t chance_of_both(int32_t a, int32_t b) {
  return static_cast<int32_t>(int64_t{a} * b / kSureDraft);
}

// An alternative as branches are dealt out: the greatest first.
FT_HD inline uint64_t branch_priority(int32_t chance, int32_t row, int32_t rank) {
  const auto place = static_cast<uint32_t>(row * kDraftAlternatives + rank);
  return static_cast<uint64_t>(static_cast<uint32_t>(chance)) << 32 | (UINT32_MAX - place);
}

// Slot `branch` goes on with another draft than `parent` from draft `pass` on.
FT_HD inline void begin_branch(const BatchState& batch, int32_t branch, int32_t parent,
                               int32_t pass, int32_t stamp, int32_t chance) {
  const int32_t leader = text_slot(batch, parent);
  batch.params[branch] = batch.params[leader];
  SlotState& state = batch.slots[branch];
  state = batch.slots[parent];
  state.num_draft_tokens = pass;
  state.branch = {stamp, chance, leader, parent, pass, 0, 0};
  batch.slots[leader].branch.stamp = stamp;
  const int32_t first = first_own_index(batch, branch);
  for (int32_t i = 0; i < batch.branch_blocks && first + i < batch.max_blocks; ++i) {
    const int64_t at = int64_t{branch} * batch.max_blocks + first + i;
    batch.block_tables[at] = own_block(batch, branch, i, false);
    if (batch.window_tables != nullptr) {
      batch.window_tables[at] = own_block(batch, branch, i, true);
    }
  }
}

void branch_drafts(Queue& queue, const BranchDraftsArgs& args);

}  // namespace foretoken
