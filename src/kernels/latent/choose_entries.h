#pragma once
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Chooses which positions each live token row attends to (DeepSeek-AI 2025, V3.2): of those that a
// row at p = positions[r] sees, from min(kv_begin, p) to p, the `top` with the highest score
//   sum over heads h of weights[r, h] * max(q[r, h] . key, 0),
// the lower position first where scores are equal; all of them where there are no more. With
// positions_each > 1 a key stands for so many positions (DeepSeek V4): the row sees the keys of
// those that end before p + 1, from kv_begin on, which may be none, and "position" below is a key's
// number. With `spreads` (GLM 5.3) what comes out are all positions that the chosen keys stand for,
// and those behind the last whole key, as entries of blocks of positions_each times as many. Scores
// are floats, their sums have one order whatever rows are beside, and NaN counts as
// the highest.
//
// What comes out is for an attention op that is told of a sequence for each row: positions as
// ascending entries of the KV cache (block * block_size + place) are block tables of blocks of one
// entry, max_blocks = top; `last` is the position of each row in its own; `rows` says that row r
// reads table r. Where ranks share the positions each has all keys and makes the same choice; its
// entries are those that it holds (KvLayer), and `last` is the position whose row would see as many
// of them: own entries and no other.
struct ChooseEntriesArgs {
  static constexpr Op kOp = Op::kChooseEntries;
  const StepCounts* counts;
  const void* q;                // [max_rows, num_heads, head_dim] of dtype
  const float* weights;         // [max_rows, num_heads]
  const void* keys;             // [num_blocks, block_size, head_dim] of dtype
  const int32_t* positions;     // [max_rows]
  const int32_t* row_slot;      // [max_rows]
  const int32_t* block_tables;  // [slots, max_blocks]
  int32_t* entries;             // [max_rows, listed_entries]; what is behind `last` stays
  int32_t* last;                // [max_rows] number of own entries - 1; of several ranks, this
                                // times context_size + context_rank
  int32_t* rows;                // [max_rows]
  float* workspace;             // [kMaxScores]
  int32_t max_blocks;           // of at most kMaxScores positions
  int32_t block_size;           // positions of a block, of all ranks
  int32_t kv_begin;
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;          // a multiple of kIndexDimStep, at most kMaxIndexDim
  int32_t top;               // at most kMaxChosen
  DType dtype;               // kF32 or kBF16
  int32_t context_size = 1;  // as of KvLayer
  int32_t context_rank = 0;
  int32_t positions_each = 1;  // with `spreads` a multiple of context_size
  int32_t spreads = 0;
};

// Entries of a row.
FT_HD constexpr int32_t listed_entries(int32_t top, int32_t positions_each, bool spreads) {
  return spreads ? top * positions_each + positions_each - 1 : top;
}
FT_HD inline int32_t listed_entries(const ChooseEntriesArgs& a) {
  return listed_entries(a.top, a.positions_each, a.spreads != 0);
}

// Keys [begin, end) that the row at a position sees.
struct SeenKeys {
  int32_t begin;
  int32_t end;
};
FT_HD inline SeenKeys seen_keys(const ChooseEntriesArgs& a, int32_t position) {
  const int32_t end = (position + 1) / a.positions_each;
  const int32_t last = end > 0 ? end - 1 : 0;
  return {a.kv_begin < last ? a.kv_begin : last, end};
}

// Positions of a row behind the last whole key, with `spreads`: those that this rank holds, and
// where the first of them lies.
struct TailPositions {
  int32_t own;
  int64_t first;
};
// key_entry: the entry that a key of them would have.
FT_HD inline TailPositions tail_positions(const ChooseEntriesArgs& a, int32_t position,
                                          int64_t key_entry) {
  const int32_t behind = (position + 1) % a.positions_each - a.context_rank;
  const int32_t own = behind > 0 ? (behind + a.context_size - 1) / a.context_size : 0;
  return {own, key_entry * a.positions_each / a.context_size};
}

inline constexpr int kIndexDimStep = 16;
inline constexpr int kMaxChosen = 8192;
inline constexpr int kMaxIndexHeads = 128;
// Scores that wait to be compared: of one row over the longest context, or of many.
inline constexpr int64_t kMaxScores = int64_t{16} << 20;

// Ascending as scores are, as integers; both zeros are equal.
FT_HD inline uint32_t score_order(float score) {
  const float value = score + 0.0f;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

void choose_entries(Queue& queue, const ChooseEntriesArgs& args);

}  // namespace foretoken
