#pragma once
#include <algorithm>

#include "kernels/attention/attention.h"

namespace foretoken::cpu {

inline constexpr int kMostTileQueries = 64;

// Query heads [first_head, first_head + heads) of one KV head, of rows [first_row, first_row +
// rows) of one sequence at consecutive positions: rows * heads <= kMostTileQueries.
struct AttentionTile {
  int64_t first_row;
  int rows;
  int32_t kv_head;
  int first_head;
  int heads;
};

// KV positions [begin, end) that a row sees.
struct SeenPositions {
  int begin;
  int end;
};

inline SeenPositions seen_by(const AttentionArgs& a, int64_t row) {
  return {first_seen(a, a.positions[row]), a.positions[row] + 1};
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

// Whether attend_tile serves such keys and values on this machine. A machine that has it never
// computes their attention otherwise: bits differ.
bool has_attention_tiles(const KvLayer& kv);

// Attention of a tile. Its keys and values are read and packed once; scores and sums are products
// of bfloat16, the weights rounded to it. The bits of a row do not depend on the tile. Needs memory
// of the calling thread, taken on its first call.
void attend_tile(const AttentionArgs& a, const AttentionTile& tile);

}  // namespace foretoken::cpu
