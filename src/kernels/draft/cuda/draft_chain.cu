#include "kernels/draft/draft_chain.h"

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kChainThreads = 1024;

// One block; a thread has a logits row of the block, and acts where that is a slot's first.
__global__ void __launch_bounds__(kChainThreads) draft_chain_kernel(DraftChainArgs args) {
  __shared__ int scratch[kChainThreads];
  wait_for_previous();
  let_next_start();
  const int num_rows = args.counts->num_logits_rows;
  int taken = 0;
  int rows = 0;
  for (int begin = 0; begin < num_rows; begin += kChainThreads) {
    const int row = begin + threadIdx.x;
    const int token_row = row < num_rows ? args.logits_rows[row] : 0;
    const int slot = row < num_rows ? args.row_slot[token_row] : args.num_slots;
    SlotState& state = args.slots[slot];
    const bool is_first = row < num_rows && args.before[token_row] + 1 == state.len;
    int wanted = is_first ? state.draft.num_draft_tokens : 0;
    const bool takes = is_first && args.draft > 0 && wanted >= args.draft;
    const int i = taken + block_scan<kChainThreads>(takes ? 1 : 0, scratch) - 1;
    taken += scratch[kChainThreads - 1];
    int id = is_first ? args.token_ids[token_row - args.lead] : 0;
    if (takes) {
      id = args.drawn[i];
      if (id >= 0 && args.id_map != nullptr) id = args.id_map[id];
      args.sampled[row + args.draft - 1] = id;
      const bool sure = args.confidence == nullptr || args.confidence[i] >= args.least;
      if (id < 0 || !sure) state.draft.num_draft_tokens = wanted = args.draft - 1;
    }
    const bool goes_on = is_first && wanted > args.draft;
    const int out = rows + block_scan<kChainThreads>(goes_on ? 1 : 0, scratch) - 1;
    rows += scratch[kChainThreads - 1];
    if (goes_on) {
      args.out_ids[out] = id;
      args.out_from[out] = row + args.draft;
      args.out_positions[out] = state.len - 1 + args.draft;
      args.out_slot[out] = slot;
      args.out_logits_rows[out] = out;
    }
  }
  if (threadIdx.x == 0) *args.out_counts = StepCounts{rows, rows, 0, 0};
  for (int row = rows + threadIdx.x; row < args.max_out; row += kChainThreads) {
    args.out_ids[row] = args.out_from[row] = args.out_positions[row] = 0;
    args.out_slot[row] = args.num_slots;
    args.out_logits_rows[row] = row;
  }
}

}  // namespace

void launch_draft_chain(const void* args, cudaStream_t stream) {
  launch_kernel(draft_chain_kernel, 1, kChainThreads, 0, stream, op_args<DraftChainArgs>(args));
}

}  // namespace foretoken::cuda
