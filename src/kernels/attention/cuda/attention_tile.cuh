#pragma once
#include <algorithm>

#include "kernels/attention/cuda/attention_common.cuh"

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

// Which of up to kRows rows go on from the one before them.
template <int kRows>
struct LinkedRows {
  uint32_t linked[kRows / 32 + 3];  // after a zero: bit r, row r goes on from row r - 1

  // Rows before `row` in its run, and behind it up to 32.
  __device__ int before(int row) const {
    int count = 0;
    int joined = 32;
    while (joined == 32) {
      const int at = row - count;
      joined = __clz(~__funnelshift_l(linked[at / 32], linked[at / 32 + 1], 31 - at % 32));
      count += joined;
    }
    return count;
  }
  __device__ int after(int row) const {
    const int at = row + 1;
    const uint32_t bits = ~__funnelshift_r(linked[at / 32 + 1], linked[at / 32 + 2], at % 32);
    return bits == 0 ? 32 : __ffs(static_cast<int>(bits)) - 1;
  }
};

// Length of the run of lanes 0, 1, ... whose `flag` is set.
__device__ inline int leading_ones(bool flag) {
  return __clz(__brev(~__ballot_sync(0xffffffffu, flag)));
}

inline constexpr int kLongRun = kShortRun;  // rows; at most a warp

// Whether the run of consecutive positions that `row` belongs to has more than kLongRun rows.
__device__ inline bool in_long_run(const AttentionArgs& args, int row, int live) {
  const int lane = threadIdx.x % 32;
  const int before = row - 1 - lane;
  const int after = row + lane;
  return leading_ones(before >= 0 && has_successor(args, before)) + 1 +
             leading_ones(after + 1 < live && has_successor(args, after)) >
         kLongRun;
}

// How large a kernel makes its tiles.
struct TileShape {
  int tokens;     // rows of a tile, at most
  int max_heads;  // query heads of a KV head that a tile may have
};
inline TileShape tiles_for(const AttentionArgs& args, int query_rows) {
  const int max_heads = std::min(args.num_heads / args.kv.num_kv_heads, query_rows);
  return {query_rows / max_heads, max_heads};
}
// Pairs of a KV head and a group of its query heads.
inline int head_chunks(const AttentionArgs& args, const TileShape& shape) {
  return args.kv.num_kv_heads * ceil_div(args.num_heads / args.kv.num_kv_heads, shape.max_heads);
}

// The tile of `count` rows from `row` on.
__device__ inline QueryTile make_tile(const AttentionArgs& args, const TileShape& shape,
                                      int head_chunk, int row, int count) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int chunks = ceil_div(group, shape.max_heads);
  const int begin = head_chunk % chunks * shape.max_heads;
  QueryTile tile;
  tile.first_row = row;
  tile.num_tokens = count;
  tile.position = args.positions[row];
  tile.slot = args.row_slot[row];
  tile.kv_head = head_chunk / chunks;
  tile.first_head = tile.kv_head * group + begin;
  tile.heads = min(shape.max_heads, group - begin);
  tile.first_kv = first_visible(args, tile.position);
  tile.last_kv = last_seen(args, row + count - 1, tile.position + count - 1);
  return tile;
}

// The query tiles of the other runs that begin in rows [row, end), in order, but for those that end
// before row `first_end`. Tiles are counted from the run's first row.
struct ShortTileWalk {
  const AttentionArgs& args;
  int live;
  TileShape shape;
  int head_chunk;
  int row;
  int end;
  int first_end;
  QueryTile tile{};  // without tokens: there is none

  __device__ void next() {
    tile.num_tokens = 0;
    while (row < end && tile.num_tokens == 0) {
      const int lane = threadIdx.x % 32;
      const int i = row - 1 - lane;
      const int j = row + lane;
      const int before = leading_ones(i >= 0 && has_successor(args, i));
      const int rest = leading_ones(j + 1 < live && has_successor(args, j)) + 1;
      const bool is_long = before + rest > kLongRun;
      const int count = min(rest, shape.tokens - before % shape.tokens);
      if (!is_long && before % shape.tokens == 0 && row + rest >= first_end) {
        tile = make_tile(args, shape, head_chunk, row, count);
      }
      row += is_long ? rest : count;
    }
  }
};

// The query tiles of long runs in rows [row, end), in order: all threads of a warp walk together.
// Grouping moves work only: a row's arithmetic does not depend on its neighbours.
struct TileWalk {
  const AttentionArgs& args;
  int live;
  TileShape shape;
  int head_chunk;  // KV head and group of its query heads
  int row;
  int end;
  QueryTile tile{};  // without tokens: there is none

  __device__ void next() {
    tile.num_tokens = 0;
    while (row < end && tile.num_tokens == 0) {
      int count = 1;
      int joined = 32;
      while (joined == 32) {
        const int i = row + count + static_cast<int>(threadIdx.x % 32);
        joined = leading_ones(i < end && has_successor(args, i - 1));
        count += joined;
      }
      if (in_long_run(args, row, live)) tile = make_tile(args, shape, head_chunk, row, count);
      row += count;
    }
  }
};

// Whether a long run may have rows in [begin, end): more than kLongRun rows are kLongRun rows with
// a predecessor, so in words of as many bits they fill one or the neighbouring parts of two.
__device__ inline bool may_have_long_run(const AttentionArgs& args, int begin, int end, int live) {
  static_assert(kLongRun == 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint32_t before = 0;
  bool found = false;
  for (int word = begin - 32; word < end + 32; word += 32) {
    const int row = word + lane;
    const uint32_t bits =
        __ballot_sync(0xffffffffu, row > 0 && row < live && has_successor(args, row - 1));
    found = found || __clz(~before) + __clz(__brev(~bits)) >= 32 || bits == 0xffffffffu;
    before = bits;
  }
  return found;
}

// Block (KV head and group of its query heads, `tokens` rows), the last rows first: in a long
// prompt they see most.
__device__ inline TileWalk tiles_of_block(const AttentionArgs& args, const TileShape& shape) {
  const int live = min(args.counts->num_rows, args.max_rows);
  const int begin = (gridDim.y - 1 - blockIdx.y) * shape.tokens;
  const int end = min(begin + shape.tokens, live);
  const bool any = may_have_long_run(args, begin, end, live);
  return {args, live, shape, static_cast<int>(blockIdx.x), any ? begin : end, end};
}

}  // namespace foretoken::cuda
