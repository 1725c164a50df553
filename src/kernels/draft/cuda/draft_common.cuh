#pragma once
#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/draft/draft_tensors.h"
#include "kernels/draft_entries.h"

// What the kernels that lay out a drafter's rows share: one block of kDraftThreads threads.
namespace foretoken::cuda {

inline constexpr int kDraftThreads = 1024;

// Row `row` computes the entry of `position` of a slot. Returns the KV slot of the entry.
__device__ inline int place_draft_row(const DraftTensors& out, const BatchState& batch, int row,
                                      int slot, int position) {
  const int place = kv_slot_at(batch, slot, position);
  out.rows.positions[row] = position;
  out.rows.row_slot[row] = slot;
  out.rows.kv_slot[row] = place;
  return place;
}

// Sets the counts and turns the rows beyond the live ones into padding.
__device__ inline void end_draft_rows(const DraftTensors& out, const BatchState& batch, int rows,
                                      int logits_rows, int max_rows) {
  if (threadIdx.x == 0) *out.rows.counts = StepCounts{rows, logits_rows, 0, 0};
  for (int row = rows + threadIdx.x; row < max_rows; row += kDraftThreads) {
    out.rows.token_ids[row] = 0;
    out.rows.positions[row] = 0;
    out.rows.row_slot[row] = batch.num_slots;
    out.rows.kv_slot[row] = 0;
    out.source[row] = 0;
    if (out.seen != nullptr) out.seen[row] = 0;
  }
}

}  // namespace foretoken::cuda
