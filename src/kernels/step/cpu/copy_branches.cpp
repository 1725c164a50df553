#include "kernels/step/copy_branches.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"
#include "kernels/step/branch_copy.h"

namespace foretoken::cpu {
namespace {

void copy_group(const BatchState& batch, int32_t* tables, const BranchParts& group,
                const BranchCopy& copy) {
  const int32_t* from = tables + int64_t{copy.from} * batch.max_blocks;
  int32_t* to = tables + int64_t{copy.to} * batch.max_blocks;
  std::copy_n(from, copy.table_entries, to);
  for (int32_t i = copy.first; i <= copy.last; ++i) {
    for (int32_t p = 0; p < group.count; ++p) {
      const BlockPart& part = group.parts[p];
      std::memcpy(part.base + int64_t{to[i]} * part.bytes,
                  part.base + int64_t{from[i]} * part.bytes, static_cast<size_t>(part.bytes));
    }
  }
}

}  // namespace

void copy_branches(const void* args, CpuPool&) {
  const auto& a = *static_cast<const CopyBranchesArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  const auto stamp = static_cast<int32_t>(plan.header->step + 1);
  for (int32_t b = first_branch(a.batch); b < a.batch.num_slots; ++b) {
    const BranchCopy copy = branch_copy(a, b, stamp);
    if (copy.last < copy.first) continue;
    copy_group(a.batch, a.batch.block_tables, a.full, copy);
    if (a.windowed.count > 0) copy_group(a.batch, a.batch.window_tables, a.windowed, copy);
  }
}

}  // namespace foretoken::cpu
