#pragma once
#include <algorithm>

#include "kernels/attention/attention.h"

namespace foretoken::cpu {

inline constexpr int kMaxTileQueries = 64;

// Query heads [first_head, first_head + heads) of one KV head, of rows [first_row, first_row +
// rows) of one sequence at consecutive positions: rows * heads <= kMaxTileQueries.
struct AttentionTile {
  int64_t first_row;
  int rows;
  int32_t kv_head;
  int first_head;
  int heads;
};

// Entries [begin, end) of the cache that a row sees; positions, where it holds all of them.
struct SeenPositions {
  int begin;
  int end;
};

inline SeenPositions seen_by(const AttentionArgs& a, int64_t row) {
  const int position = a.positions[row];
  return {entries_before(a.kv, first_seen(a, position)),
          entries_before(a.kv, last_seen(a, row, position) + 1)};
}

// What any row of the tile sees lies in between.
inline SeenPositions seen_by(const AttentionArgs& a, const AttentionTile& tile) {
  SeenPositions all = seen_by(a, tile.first_row);
  for (int r = 1; r < tile.rows; ++r) {
    const SeenPositions seen = seen_by(a, tile.first_row + r);
    all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
  }
  return all;
}

// Leaves a head's state where attention_state wants it; `scale` is of the values.
struct SoftState {
  const float* values;
  float max;
  float sum;
};
inline void store_state(const AttentionArgs& a, int64_t row, int head, const SoftState& state,
                        float scale) {
  const int size = a.kv.value_size();
  float* to = attention_state(a, row, head);
  for (int d = 0; d < size; ++d) to[d] = state.values[d] * scale;
  to[size] = state.max;
  to[size + 1] = state.sum;
}

// Whether attend_tile serves such keys and values on this machine. A machine that has it never
// computes their attention otherwise: bits differ.
bool has_attention_tiles(const KvLayer& kv);

// Attention of a tile. Its keys and values are read and packed once; scores and sums are products
// of bfloat16, the weights rounded to it. The bits of a row do not depend on the tile. Needs memory
// of the calling thread, taken on its first call.
void attend_tile(const AttentionArgs& a, const AttentionTile& tile);

}  // namespace foretoken::cpu
