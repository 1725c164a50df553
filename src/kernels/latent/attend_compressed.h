#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/attention.h"
#include "kernels/latent/compress_rows.h"
#include "kernels/latent/compressed_entry.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Attention to a window and to compressed entries (DeepSeek V4), for the live token rows. All heads
// read the same entries, each a key and a value at once. The row at position p sees
// 1. the entries of positions max(kv_begin, p + 1 - window) to p, through window_tables;
// 2. of the compressed entries, of which (p + 1) / ratio exist for it: those whose numbers in
//    `entries` are given by chosen[r], the first min(top, (p + 1) / ratio) of them; or, where that
//    is null, all, through block_tables. Without a ratio there are none.
// Scores are scale * (q . entry), and exp(sinks[h]) is added to the sum that divides. Softmax and
// sums are in float, in the order of what is said here, whatever rows are beside. What comes out
// turns back: its last rope_dim elements as TurnTailsArgs says, by -(p + position_shift).
// Where ranks share the positions, a row sees those of the entries that this one has: of positions
// as KvLayer says, of compressed ones as CompressRowsArgs. The op then leaves `states` for
// merge_partials, which knows the sinks; nothing turns back.
struct AttendCompressedArgs {
  static constexpr Op kOp = Op::kAttendCompressed;
  const StepCounts* counts;
  const void* q;                 // [max_rows, num_heads, head_dim] of dtype
  void* out;                     // the same
  const int32_t* positions;      // [max_rows]
  const int32_t* row_slot;       // [max_rows]
  const void* kv;                // [num_blocks, block_size] entries of `format`
  const int32_t* window_tables;  // [slots, max_blocks]
  const void* entries;           // as of CompressRowsArgs, or null
  const int32_t* block_tables;   // [slots, max_blocks]
  const int32_t* chosen;         // [max_rows, top] or null
  const float* sinks;            // [num_heads]
  const float* inv_freq;         // [rope_dim / 2]
  int32_t max_blocks;
  int32_t block_size;  // of this rank's positions
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;  // a multiple of kCompressedStep, at most kMaxCompressedDim
  int32_t window;
  int32_t ratio;  // as of CompressRowsArgs; 0: there are no compressed entries
  int32_t top;
  int32_t rope_dim;
  float scale;
  float scaling;  // of cosines and sines
  DType dtype;    // kF32 or kBF16
  int32_t kv_begin = 0;
  int32_t position_shift = 0;
  KvFormat format = KvFormat::kPlain;  // of both kinds of entries
  // Of several ranks. `chosen` has this one's then, as many as ChooseEntriesArgs::last says.
  int32_t context_size = 1;
  int32_t context_rank = 0;
  const int32_t* chosen_last = nullptr;  // [max_rows]
  float* states = nullptr;               // as of AttentionArgs, instead of `out` and sinks
  int32_t part_heads = 0;
};

// Where the state of a row and head goes.
FT_HD inline float* compressed_state(const AttendCompressedArgs& a, int64_t row, int32_t head) {
  const int64_t index = (head / a.part_heads * int64_t{a.max_rows} + row) * a.part_heads;
  return a.states + (index + head % a.part_heads) * attention_state_size(a.head_dim);
}

FT_HD inline EntryForm entry_form(const AttendCompressedArgs& a) {
  return {a.format, a.dtype, a.head_dim, a.rope_dim};
}

// What a row sees, as one list: the window, then compressed entries.
struct CompressedSight {
  int32_t first;       // entry of the window; a position, where this rank has all
  int32_t num_window;  // entries
  int32_t num_entries;
};

// How many of the positions or compressed entries before this number are this rank's.
FT_HD inline int32_t own_before(const AttendCompressedArgs& a, int32_t number) {
  return (number - a.context_rank + a.context_size - 1) / a.context_size;
}

// Of compressed entries, those that are chosen, or all that are closed at the position.
FT_HD inline int32_t num_seen_entries(const AttendCompressedArgs& a, int32_t row,
                                      int32_t position) {
  if (a.ratio == 0) return 0;
  if (a.chosen_last != nullptr) return own_before(a, a.chosen_last[row] + 1);
  const int32_t closed = (position + 1) / a.ratio;
  return own_before(a, a.chosen != nullptr && closed > a.top ? a.top : closed);
}

FT_HD inline CompressedSight compressed_sight(const AttendCompressedArgs& a, int32_t row,
                                              int32_t position) {
  const int32_t first = position + 1 > a.window + a.kv_begin ? position + 1 - a.window : a.kv_begin;
  const int32_t begin = own_before(a, first), end = own_before(a, position + 1);
  return {begin, end > begin ? end - begin : 0, num_seen_entries(a, row, position)};
}

// Entry i of that list, counted in `kv` for i < num_window and in `entries` for others.
FT_HD inline int64_t seen_entry(const AttendCompressedArgs& a, const CompressedSight& sight,
                                int32_t row, int32_t i) {
  const int64_t table = int64_t{a.row_slot[row]} * a.max_blocks;
  if (i < sight.num_window) {
    const int32_t entry = sight.first + i;
    const int64_t block = a.window_tables[table + entry / a.block_size];
    return block * a.block_size + entry % a.block_size;
  }
  const int32_t own = i - sight.num_window;
  if (a.chosen != nullptr) return a.chosen[int64_t{row} * a.top + own];
  const int32_t number = own * a.context_size + a.context_rank;
  const int32_t end = (number + 1) * a.ratio - 1;  // the window's last position
  const int32_t positions = a.block_size * a.context_size;
  const int64_t block = a.block_tables[table + end / positions];
  return compressed_entry(block * positions + end % positions, positions, a.ratio, a.context_size);
}

void attend_compressed(Queue& queue, const AttendCompressedArgs& args);

}  // namespace foretoken
