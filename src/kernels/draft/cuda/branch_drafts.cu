#include "kernels/draft/branch_drafts.h"

#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/draft_common.cuh"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = kDraftThreads / 32;

struct Branching {
  int32_t free[kMaxBranches];
  uint64_t chosen[kMaxBranches];
  uint64_t maxima[kWarps];
  int num_free;
};

__device__ const DraftAlternative& alternative(const BranchDraftsArgs& args, int row, int rank) {
  return args.alternatives[int64_t{row} * (kDraftAlternatives + 1) + rank];
}

__device__ int32_t chance_before(const BranchDraftsArgs& args, int row) {
  return args.pass == 0 ? kSureDraft : args.batch.slots[args.slots[row]].branch.chance;
}

__device__ void find_free(const BranchDraftsArgs& args, Branching& shared) {
  if (threadIdx.x != 0) return;
  shared.num_free = 0;
  const int32_t first = first_branch(args.batch);
  for (int32_t b = first; b < first + args.max_branches; ++b) {
    if (!follows(args.batch, b)) shared.free[shared.num_free++] = b;
  }
}

// The alternative of that number as it competes for a branch; 0: it does not.
__device__ uint64_t priority_of(const BranchDraftsArgs& args, int number) {
  const int row = number / kDraftAlternatives;
  const int rank = number % kDraftAlternatives;
  if (args.sampled[row] < 0 || !may_branch(args.batch.params[args.slots[row]])) return 0;
  const DraftAlternative other = alternative(args, row, 1 + rank);
  const int32_t chance = chance_of_both(chance_before(args, row), other.chance);
  if (other.id < 0 || chance < args.min_chance) return 0;
  return branch_priority(chance, row, rank);
}

__device__ uint64_t block_max(uint64_t value, uint64_t* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = value > other ? value : other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < kWarps; ++warp) value = value > scratch[warp] ? value : scratch[warp];
  return value;
}

// How many branches begin; those are in shared.chosen, the highest priority first.
__device__ int choose(const BranchDraftsArgs& args, int num_rows, Branching& shared) {
  const int most = min(shared.num_free, args.max_rows - num_rows);
  uint64_t bound = UINT64_MAX;
  int count = 0;
  while (count < most) {
    uint64_t best = 0;
    for (int i = threadIdx.x; i < num_rows * kDraftAlternatives; i += kDraftThreads) {
      const uint64_t priority = priority_of(args, i);
      if (priority < bound && priority > best) best = priority;
    }
    bound = block_max(best, shared.maxima);
    if (bound == 0) break;
    if (threadIdx.x == 0) shared.chosen[count] = bound;
    ++count;
  }
  __syncthreads();
  return count;
}

__device__ void begin(const BranchDraftsArgs& args, int row, int32_t branch, uint64_t priority,
                      int32_t stamp) {
  const uint32_t place = UINT32_MAX - static_cast<uint32_t>(priority);
  const int from = static_cast<int>(place / kDraftAlternatives);
  const int rank = static_cast<int>(place % kDraftAlternatives);
  begin_branch(args.batch, branch, args.slots[from], args.pass, stamp,
               static_cast<int32_t>(priority >> 32));
  args.slots[row] = branch;
  args.logits_rows[row] = args.logits_rows[from];
  args.sampled[row] = alternative(args, from, 1 + rank).id;
}

// One block; a thread has logits rows, and one a branch that begins.
__global__ void __launch_bounds__(kDraftThreads) branch_drafts_kernel(BranchDraftsArgs args) {
  __shared__ Branching shared;
  wait_for_previous();
  const int num_rows = min(args.counts->num_logits_rows, args.max_rows);
  for (int j = threadIdx.x; j < num_rows; j += kDraftThreads) {
    args.slots[j] = args.row_slot[args.logits_rows[j]];
  }
  find_free(args, shared);
  __syncthreads();
  const int count = choose(args, num_rows, shared);
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const auto stamp = static_cast<int32_t>(plan.header->step + 1);
  if (static_cast<int>(threadIdx.x) < count) {
    begin(args, num_rows + threadIdx.x, shared.free[threadIdx.x], shared.chosen[threadIdx.x],
          stamp);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < num_rows; j += kDraftThreads) {
    args.batch.slots[args.slots[j]].branch.chance =
        chance_of_both(chance_before(args, j), alternative(args, j, 0).chance);
  }
  if (threadIdx.x == 0) args.counts->num_logits_rows = num_rows + count;
}

}  // namespace

void launch_branch_drafts(const void* args, cudaStream_t stream) {
  launch_kernel(branch_drafts_kernel, 1, kDraftThreads, 0, stream, op_args<BranchDraftsArgs>(args));
}

}  // namespace foretoken::cuda
