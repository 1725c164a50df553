#include "kernels/step/copy_branches.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"
#include "kernels/step/branch_copy.h"
#include "kernels/step/cuda/copy_bytes.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksOfBranch = 32;

// The blocks of blockIdx.x divide the parts of all blocks that are copied.
__device__ void copy_group(const BatchState& batch, int32_t* tables, const BranchParts& group,
                           const BranchCopy& copy) {
  const int32_t* from = tables + int64_t{copy.from} * batch.max_blocks;
  int32_t* to = tables + int64_t{copy.to} * batch.max_blocks;
  for (int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x); i < copy.table_entries;
       i += static_cast<int>(gridDim.x) * kThreads) {
    to[i] = from[i];
  }
  const int count = (copy.last - copy.first + 1) * group.count;
  for (int i = static_cast<int>(blockIdx.x); i < count; i += static_cast<int>(gridDim.x)) {
    const int entry = copy.first + i / group.count;
    const BlockPart part = group.parts[i % group.count];
    copy_bytes(part.base + int64_t{to[entry]} * part.bytes,
               part.base + int64_t{from[entry]} * part.bytes, part.bytes, threadIdx.x, kThreads);
  }
}

__global__ void __launch_bounds__(kThreads) copy_branches_kernel(CopyBranchesArgs args) {
  wait_for_previous();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const auto stamp = static_cast<int32_t>(plan.header->step + 1);
  const int32_t branch = first_branch(args.batch) + static_cast<int32_t>(blockIdx.y);
  const BranchCopy copy = branch_copy(args, branch, stamp);
  if (copy.last < copy.first) return;
  copy_group(args.batch, args.batch.block_tables, args.full, copy);
  if (args.windowed.count > 0) {
    copy_group(args.batch, args.batch.window_tables, args.windowed, copy);
  }
}

}  // namespace

void launch_copy_branches(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CopyBranchesArgs>(packed);
  launch_kernel(copy_branches_kernel,
                dim3(kBlocksOfBranch, static_cast<unsigned>(args.batch.num_branches)), kThreads, 0,
                stream, args);
}

}  // namespace foretoken::cuda
