#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step/move_blocks.h"
#include "kernels/step_types.h"

namespace foretoken {

// The arrays of a group's blocks, in device memory.
struct BranchParts {
  const BlockPart* parts;  // [count]
  int32_t count;
};

// Copies what lies in blocks between branches (kernels/branches.h) and the slots that they come
// from or whose sequence takes them, in whole blocks of all parts; page headers and ids stay.
//   pass >= 0, behind branch_drafts of that pass: each branch that began there gets its parent's
//   table entries before first_own_index, and in its own blocks what the parent's hold up to
//   position len + pass - 1.
//   pass < 0, behind verify_and_commit: each sequence with BranchState::winner gets the winner's
//   own blocks in place of its own, from winner_begin on up to its last known token.
struct CopyBranchesArgs {
  static constexpr Op kOp = Op::kCopyBranches;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  const StepCounts* counts;  // of the step
  const SpanState* spans;
  BranchParts full;
  BranchParts windowed;
  int32_t pass;
};

void copy_branches(Queue& queue, const CopyBranchesArgs& args);

}  // namespace foretoken
