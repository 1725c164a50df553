#pragma once
#include <algorithm>
#include <cstdint>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/op.h"
#include "kernels/row_kind.h"
#include "kernels/sampling/token_masks.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ops in which the queues of all ranks meet. Every rank enqueues them in the same order with the
// same sizes; live counts are equal on all ranks. `comm` is Communicator::handle.

// Columns [begin, begin + count) of a matrix of `cols` columns that a rank has. Narrow matrices are
// not cut: every rank has all columns. Cuts lie at multiples of 16.
struct ColumnPart {
  int32_t begin;
  int32_t count;
};
FT_HD inline bool cuts_columns(int32_t cols, int32_t size) { return size > 1 && cols >= 64 * size; }
FT_HD inline ColumnPart column_part(int32_t cols, int32_t rank, int32_t size) {
  if (!cuts_columns(cols, size)) return {0, cols};
  const int64_t units = (cols + 15) / 16;
  const auto cut = [&](int64_t r) {
    const int64_t at = units * r / size * 16;
    return static_cast<int32_t>(at < cols ? at : cols);
  };
  return {cut(rank), cut(rank + 1) - cut(rank)};
}
// The widest part of any rank.
inline int32_t widest_column_part(int32_t cols, int32_t size) {
  int32_t widest = 0;
  for (int32_t r = 0; r < size; ++r) widest = std::max(widest, column_part(cols, r, size).count);
  return widest;
}

// x = the sum of x over the ranks, in place, added in the order of ranks: the bits of a row are the
// same on all ranks and depend on that row alone. Live rows as of GemmArgs. Up to three floats
// behind the live rows, or the last row, are memory, too, and may change.
struct AllReduceArgs {
  static constexpr Op kOp = Op::kAllReduce;
  const void* comm;
  const StepCounts* counts;
  float* x;  // [max_rows, cols]
  RowKind row_kind;
  int32_t row_offset;
  int32_t max_rows;
  int32_t cols;
};

void all_reduce(Queue& queue, const AllReduceArgs& args);

// out = the ranks' columns of the live logits rows side by side, as column_part cuts them.
struct GatherColumnsArgs {
  static constexpr Op kOp = Op::kGatherColumns;
  const void* comm;
  const StepCounts* counts;
  const float* part;  // [max_rows, this rank's columns]
  float* out;         // [max_rows, cols]
  int32_t row_offset;
  int32_t max_rows;
  int32_t cols;
};

void gather_columns(Queue& queue, const GatherColumnsArgs& args);

// ids of the best rows of a matrix whose rows are cut over the ranks, from the keys that
// head_argmax left on each; id_map is that of the whole matrix.
struct GatherArgmaxArgs {
  static constexpr Op kOp = Op::kGatherArgmax;
  const void* comm;
  const StepCounts* counts;
  const uint64_t* keys;   // [max_rows]
  const int32_t* id_map;  // [all rows] or null: the row itself
  int32_t* ids;           // [max_rows]; -1: none
  int32_t max_rows;       // logits rows
};

void gather_argmax(Queue& queue, const GatherArgmaxArgs& args);

// The masks that rank 0 has for the step's spans, and how many, become those of all ranks: time
// decides what is there, so one rank has to say. Behind await_masks on rank 0, instead of it on the
// others.
struct ShareMasksArgs {
  static constexpr Op kOp = Op::kShareMasks;
  const void* comm;
  const StepCounts* counts;
  const SpanState* spans;
  SlotState* slots;
  const SlotParams* params;
  uint32_t* masks;  // MaskExchange::masks, each rank's own
  int32_t mask_words;
  int32_t max_spans;
  int32_t max_rows;  // at least the masks that all spans have together
};

void share_masks(Queue& queue, const ShareMasksArgs& args);

// The live logits rows whose sequences have logits processors become those of rank 0, on whose host
// these have run. Scored rows have none.
struct ShareLogitsArgs {
  static constexpr Op kOp = Op::kShareLogits;
  const void* comm;
  float* logits;  // [max_rows, vocab]
  StepTensors tensors;
  const SlotState* slots;
  const SlotParams* params;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void share_logits(Queue& queue, const ShareLogitsArgs& args);

}  // namespace foretoken
