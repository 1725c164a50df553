#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/branches.h"
#include "kernels/step/copy_branches.h"

// Which blocks copy_branches copies for one branch, for the CPU and the CUDA kernel.

namespace foretoken {

// Block table entries [first, last] of `from` go to those of `to`.
struct BranchCopy {
  int32_t from = 0;
  int32_t to = 0;
  int32_t first = 0;
  int32_t last = -1;
  int32_t table_entries = 0;  // leading ones of the tables, which go as they are
};

FT_HD inline BranchCopy begun_copy(const CopyBranchesArgs& a, int32_t branch, int32_t stamp) {
  const SlotState& state = a.batch.slots[branch];
  if (state.branch.stamp != stamp || state.branch.begin != a.pass) return {};
  const int32_t first = first_own_index(a.batch, branch);
  return {state.branch.parent, branch, first, (state.len + a.pass - 1) / a.batch.block_size, first};
}

FT_HD inline BranchCopy won_copy(const CopyBranchesArgs& a, int32_t branch) {
  const int32_t leader = a.batch.slots[branch].branch.leader;
  const SlotState& state = a.batch.slots[leader];
  // Branches that had no rows in this step are left over from an earlier one.
  bool verified = false;
  const SpanState* spans = a.spans + a.counts->num_spans;
  for (int32_t i = 0; i < a.counts->num_branches; ++i) verified |= spans[i].slot == branch;
  if (!verified || state.branch.winner != branch) return {};
  return {branch, leader, state.branch.winner_begin / a.batch.block_size,
          (state.len - 1) / a.batch.block_size, 0};
}

FT_HD inline BranchCopy branch_copy(const CopyBranchesArgs& a, int32_t branch, int32_t stamp) {
  return a.pass >= 0 ? begun_copy(a, branch, stamp) : won_copy(a, branch);
}

}  // namespace foretoken
