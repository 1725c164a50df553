#include "kernels/draft/draft_next.h"

#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/draft_common.cuh"

namespace foretoken::cuda {
namespace {

// Takes the draft of one logits row; whether its slot wants another one.
__device__ bool take_draft(const DraftNextArgs& args, int slot, int id) {
  SlotState& state = args.batch.slots[slot];
  if (id < 0) {
    state.draft.num_draft_tokens = state.num_draft_tokens;
    return false;
  }
  state.drafts[args.pass] = id;
  state.num_draft_tokens = args.pass + 1;
  if (state.draft.num_draft_tokens <= args.pass + 1) return false;
  if (args.keeps_written != 0) state.draft.written = state.len + args.pass + 1;
  return true;
}

// One block; a thread has a logits row of the pass before.
__global__ void __launch_bounds__(kDraftThreads) draft_next_kernel(DraftNextArgs args) {
  __shared__ int scratch[kDraftThreads];
  wait_for_previous();
  let_next_start();
  const int num_drafted = min(args.counts->num_logits_rows, args.max_rows);
  int rows = 0;
  for (int begin = 0; begin < num_drafted; begin += kDraftThreads) {
    const int j = begin + threadIdx.x;
    const int source = j < num_drafted ? args.logits_rows[j] : 0;
    const int slot = j >= num_drafted        ? 0
                     : args.slots != nullptr ? args.slots[j]
                                             : args.row_slot[source];
    const int id = j < num_drafted ? args.sampled[j] : -1;
    const bool goes_on = j < num_drafted && take_draft(args, slot, id);
    const int row = rows + block_scan<kDraftThreads>(goes_on ? 1 : 0, scratch) - 1;
    if (goes_on) {
      place_draft_row(args.out, args.batch, row, slot, args.batch.slots[slot].len + args.pass);
      args.out.rows.token_ids[row] = args.token_map == nullptr ? id : args.token_map[id];
      args.out.rows.logits_rows[row] = row;
      args.out.source[row] = source;
      if (args.out.seen != nullptr) args.out.seen[row] = max(args.batch.slots[slot].len - 2, 0);
    }
    rows += scratch[kDraftThreads - 1];
  }
  end_draft_rows(args.out, args.batch, rows, rows, args.max_rows);
}

}  // namespace

void launch_draft_next(const void* args, cudaStream_t stream) {
  launch_kernel(draft_next_kernel, 1, kDraftThreads, 0, stream, op_args<DraftNextArgs>(args));
}

}  // namespace foretoken::cuda
