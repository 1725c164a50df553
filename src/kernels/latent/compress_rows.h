#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/latent/compressed_entry.h"
#include "kernels/linear/state_run.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Compresses windows of `ratio` positions to one entry each (DeepSeek V4). A position's inputs are
// `width` values and as many gates, one behind the other, where width is head_dim, or twice that
// where windows overlap. The live token row at a position p that ends a window, (p + 1) % ratio ==
// 0, makes the entry of it:
// 1. entry[c] = sum over the window's positions q of weight(q)[c] * value(q)[c], where weights are
//    the softmax over these positions of gate(q)[c] + bias[q % ratio][c]; where windows overlap,
//    over the positions of the window before it, if there is one, with c, and those of the window
//    itself with head_dim + c;
// 2. where there is a norm, entry becomes entry / sqrt(mean(entry^2) + norm_eps) * norm;
// 3. its last rope_dim elements, if any, turn as TurnTailsArgs says, by the window's first
// position;
// 4. it goes to `entries`, which have ceil(block_size / ratio) of a block of the sequence: to place
//    (slot % block_size) / ratio of the block that the row's KV slot lies in. Where ranks share the
//    positions, entry number n is of rank n % context_size, and places are divided by the ranks.
// Rows of one sequence lie side by side at consecutive positions, the first at any position that
// its rows have reached or at an earlier one. Inputs of positions before it come from `history`:
// those of position q are row q % history_rows of the slot. The op leaves its own rows there, of
// each sequence the last history_rows. Rows that are taken back need nothing: they are written anew
// before they are read, as long as history_rows is at least the positions of an entry less one, and
// the rows that may be taken back at once.
//
// Example: ratio 4, windows overlap. The row at position 11 makes entry 2 of the values at 4 to 7
// (the first half of their columns) and at 8 to 11 (the second half), turned by position 8.
struct CompressRowsArgs {
  static constexpr Op kOp = Op::kCompressRows;
  const StepCounts* counts;
  const float* x;            // [max_rows, x_stride], the values, then the gates
  const float* bias;         // [ratio, width]
  const float* norm;         // [head_dim] or null
  const float* inv_freq;     // [rope_dim / 2]
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  const int32_t* kv_slot;    // [max_rows]
  float* history;            // [slots + 1, history_rows, history_stride], the first value
  void* entries;             // [num_blocks, ceil(block_size / ratio)] entries of `format`
  int32_t x_stride;
  int32_t history_rows;
  int32_t history_stride;
  int32_t block_size;
  int32_t max_rows;
  int32_t head_dim;  // a multiple of kCompressedStep, at most kMaxCompressedDim
  int32_t ratio;     // at least 2
  int32_t overlaps;  // 1: windows overlap
  int32_t rope_dim;
  float scaling;
  float norm_eps;
  DType dtype;  // kF32 or kBF16
  KvFormat format = KvFormat::kPlain;
  int32_t context_size = 1;  // as of KvLayer; block_size is of all ranks
  int32_t context_rank = 0;
};

FT_HD inline EntryForm entry_form(const CompressRowsArgs& a) {
  return {a.format, a.dtype, a.head_dim, a.rope_dim};
}

inline constexpr int kCompressedStep = 8;
inline constexpr int kMaxCompressedDim = 512;

// Values of a position.
FT_HD inline int32_t compressed_width(const CompressRowsArgs& a) {
  return a.overlaps != 0 ? 2 * a.head_dim : a.head_dim;
}
// Positions that an entry is made of.
FT_HD inline int32_t compressed_span(const CompressRowsArgs& a) {
  return a.overlaps != 0 ? 2 * a.ratio : a.ratio;
}
// Entries of a block, of each of the ranks that share it.
FT_HD constexpr int32_t entries_of_block(int32_t block_size, int32_t ratio, int32_t num_ranks = 1) {
  return ((block_size + ratio - 1) / ratio + num_ranks - 1) / num_ranks;
}
// Of the window that ends at a KV slot, on its rank.
FT_HD constexpr int64_t compressed_entry(int64_t slot, int32_t block_size, int32_t ratio,
                                         int32_t num_ranks = 1) {
  return slot / block_size * entries_of_block(block_size, ratio, num_ranks) +
         slot % block_size / ratio / num_ranks;
}
// Whether the row at a position makes an entry that this rank keeps.
FT_HD inline bool makes_entry(const CompressRowsArgs& a, int32_t position) {
  return (position + 1) % a.ratio == 0 && position / a.ratio % a.context_size == a.context_rank;
}

// Values and gates of one position of a window, and its bias: the columns that count.
struct CompressedTerm {
  const float* values;
  const float* gates;
  const float* bias;
};
// Of the position that lies `back` before the row's.
FT_HD inline CompressedTerm compressed_term(const CompressRowsArgs& a, const StateRows& rows,
                                            int32_t row, int32_t back) {
  const int32_t width = compressed_width(a), position = a.positions[row] - back;
  const float* inputs =
      rows.same_run(row, row - back)
          ? a.x + int64_t{row - back} * a.x_stride
          : a.history + (int64_t{a.row_slot[row]} * a.history_rows + position % a.history_rows) *
                            a.history_stride;
  const int32_t column = a.overlaps != 0 && back < a.ratio ? a.head_dim : 0;
  return {inputs + column, inputs + width + column,
          a.bias + int64_t{position % a.ratio} * width + column};
}

void compress_rows(Queue& queue, const CompressRowsArgs& args);

}  // namespace foretoken
