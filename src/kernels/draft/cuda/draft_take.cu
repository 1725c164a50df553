#include "kernels/draft/draft_take.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kTakeThreads = 256;

// A thread has a logits row; that of a slot's first draft takes them all.
__global__ void __launch_bounds__(kTakeThreads) draft_take_kernel(DraftTakeArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x * kTakeThreads + threadIdx.x;
  if (row >= args.counts->num_logits_rows) return;
  const int token_row = args.logits_rows[row];
  SlotState& state = args.batch.slots[args.row_slot[token_row]];
  if (args.before[token_row] + 1 != state.len) return;
  const int wanted = state.draft.num_draft_tokens;
  int count = 0;
  for (; count < wanted; ++count) {
    const int id = args.sampled[row + count];
    if (id < 0) break;
    state.drafts[count] = id;
  }
  state.num_draft_tokens = count;
  state.draft.num_draft_tokens = count;
}

}  // namespace

void launch_draft_take(const void* args, cudaStream_t stream) {
  const auto& a = op_args<DraftTakeArgs>(args);
  launch_kernel(draft_take_kernel, (a.max_rows + kTakeThreads - 1) / kTakeThreads, kTakeThreads, 0,
                stream, a);
}

}  // namespace foretoken::cuda
