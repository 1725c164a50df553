#include "kernels/draft/draft_block.h"

#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/draft_common.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = kDraftThreads / 32;

// Where the rows and the logits rows of the slots at hand begin.
struct BlockPlaces {
  int scratch[kDraftThreads];
  int rows[kDraftThreads];
  int logits[kDraftThreads];
};

// The rows of the slot of logits row j of the catch-up; a warp has a slot.
__device__ void place_block(const DraftBlockArgs& args, int j, int first_row, int first_logits) {
  const int source = args.logits_rows[j];
  const int slot = args.row_slot[source];
  const SlotState& state = args.batch.slots[slot];
  const int len = state.len;
  const int rows = block_rows(args, args.batch.params[slot], len);
  const int drafts = state.draft.num_draft_tokens;
  const int first = len - 1 + args.first_entry;
  for (int i = threadIdx.x % 32; i < rows; i += 32) {
    const int row = first_row + i;
    place_draft_row(args.out, args.batch, row, slot, first + i);
    args.out.rows.token_ids[row] = i == 0 ? args.token_ids[source] : args.mask_id;
    args.out.source[row] = i == 0 ? source : args.mask_source;
    args.last_seen[row] = first + rows - 1;
    const int draft = i - args.first_drafting;
    args.before[row] = len - 1 + draft;
    if (draft >= 0 && draft < drafts) args.out.rows.logits_rows[first_logits + draft] = row;
  }
}

// One block; a thread counts for a logits row of the catch-up, a warp writes its rows.
__global__ void __launch_bounds__(kDraftThreads) draft_block_kernel(DraftBlockArgs args) {
  __shared__ BlockPlaces places;
  wait_for_previous();
  let_next_start();
  const int num_slots = args.counts->num_logits_rows;
  int rows = 0;
  int logits = 0;
  for (int begin = 0; begin < num_slots; begin += kDraftThreads) {
    const int j = begin + threadIdx.x;
    int drafts = 0;
    int own = 0;
    if (j < num_slots) {
      const int slot = args.row_slot[args.logits_rows[j]];
      drafts = args.batch.slots[slot].draft.num_draft_tokens;
      own = block_rows(args, args.batch.params[slot], args.batch.slots[slot].len);
    }
    places.rows[threadIdx.x] = rows + block_scan<kDraftThreads>(own, places.scratch) - own;
    rows += places.scratch[kDraftThreads - 1];
    places.logits[threadIdx.x] =
        logits + block_scan<kDraftThreads>(drafts, places.scratch) - drafts;
    logits += places.scratch[kDraftThreads - 1];
    const int count = min(num_slots - begin, kDraftThreads);
    for (int k = threadIdx.x / 32; k < count; k += kWarps) {
      place_block(args, begin + k, places.rows[k], places.logits[k]);
    }
    __syncthreads();
  }
  for (int row = rows + threadIdx.x; row < args.max_rows; row += kDraftThreads) {
    args.last_seen[row] = 0;
    args.before[row] = 0;
  }
  end_draft_rows(args.out, args.batch, rows, logits, args.max_rows);
}

}  // namespace

void launch_draft_block(const void* args, cudaStream_t stream) {
  launch_kernel(draft_block_kernel, 1, kDraftThreads, 0, stream, op_args<DraftBlockArgs>(args));
}

}  // namespace foretoken::cuda
