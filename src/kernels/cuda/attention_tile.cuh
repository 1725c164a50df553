#pragma once
#include "kernels/cuda/attention_common.cuh"

// Which rows and which KV positions a block of the tensor core attention takes.
namespace foretoken::cuda {

// The query rows of a block: up to `tokens` consecutive positions of one sequence, each with
// `heads` query heads of one KV head. Row m of the block is token m / heads, head m % heads.
struct QueryTile {
  int first_row;   // token row
  int num_tokens;  // 0: another block has this row
  int position;    // of the first token
  int slot;
  int kv_head;
  int first_head;
  int heads;
  int first_kv;  // KV positions that any of the rows sees
  int last_kv;
};

// Whether row and row + 1 are consecutive positions of one sequence.
__device__ inline bool has_successor(const AttentionArgs& args, int row) {
  return args.row_slot[row + 1] == args.row_slot[row] &&
         args.positions[row + 1] == args.positions[row] + 1;
}

// Length of the run of lanes 0, 1, ... whose `flag` is set.
__device__ inline int leading_ones(bool flag) {
  return __clz(__brev(~__ballot_sync(0xffffffffu, flag)));
}

// Rows before `row` in its run of consecutive positions.
__device__ inline int rows_before(const AttentionArgs& args, int row) {
  int before = 0;
  int joined = 32;
  while (joined == 32) {
    const int i = row - 1 - before - static_cast<int>(threadIdx.x % 32);
    joined = leading_ones(i >= 0 && has_successor(args, i));
    before += joined;
  }
  return before;
}

// Rows are grouped by `tokens` within runs of consecutive positions of one sequence: counted from
// the run's first row, or in long buckets, where that would cost a search, at positions that are
// multiples of `tokens`. Grouping moves work only: a row's arithmetic does not depend on its
// neighbours.
template <bool ByPosition>
__device__ QueryTile find_tile(const AttentionArgs& args, int tokens, int max_heads) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x;
  const int live = min(args.counts->num_rows, args.max_rows);
  QueryTile tile{};
  if (row >= live) return tile;
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int chunks = ceil_div(group, max_heads);
  tile.first_row = row;
  tile.position = args.positions[row];
  tile.slot = args.row_slot[row];
  tile.kv_head = blockIdx.y / chunks;
  const int begin = blockIdx.y % chunks * max_heads;
  tile.first_head = tile.kv_head * group + begin;
  tile.heads = min(max_heads, group - begin);
  int rest = tokens;  // rows that the tile may have
  if constexpr (ByPosition) {
    rest = tokens - tile.position % tokens;
    if (rest != tokens && row > 0 && has_successor(args, row - 1)) return tile;
  } else if (rows_before(args, row) % tokens != 0) {
    return tile;
  }
  int count = 1;
  int joined = 32;
  while (joined == 32) {
    const int i = count + lane;
    joined = leading_ones(i < rest && row + i < live && has_successor(args, row + i - 1));
    count += joined;
  }
  tile.num_tokens = count;
  tile.first_kv = first_visible(args, tile.position);
  tile.last_kv = tile.position + count - 1;
  return tile;
}

// The tiles that a block visits, in order: those of its splits that overlap what its rows see.
template <int Tile>
struct TileWalk {
  static_assert(kAttentionSplit % Tile == 0);
  int first_kv;
  int last_kv;
  int num_parts;
  int split;
  int begin;  // KV position of the tile

  __device__ bool valid() const { return begin <= last_kv; }
  __device__ void start(int part) {
    split = first_kv / kAttentionSplit + part;
    enter_split();
  }
  __device__ void enter_split() { begin = max(split * kAttentionSplit, first_kv / Tile * Tile); }
  __device__ void advance() {
    begin += Tile;
    if (begin % kAttentionSplit == 0) {
      split += num_parts;
      enter_split();
    }
  }
  __device__ bool ends_split() const {
    return (begin + Tile) % kAttentionSplit == 0 || begin + Tile > last_kv;
  }
};

}  // namespace foretoken::cuda
