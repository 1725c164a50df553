#pragma once
#include <cstdint>
#include <numeric>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/latent/choose_entries.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Chooses for each live token row and KV head the blocks of positions that the head's queries
// attend to (MiniMax M3). Of what a row at p = positions[r] sees, from b = min(kv_begin, p) to p,
// block i is [b + i * choice, b + (i + 1) * choice), and its score for head h is the highest
// q[r, h] . key of its positions that the row sees. The first `first` blocks are chosen, the last
// `nearest`, its own among them, and with these the best up to `top`, the earlier block first where
// scores are equal. Scores are floats, whose bits depend on the row alone; NaN is the highest.
//
// What comes out is for an attention op that is told of a row for each row and KV head of this one,
// num_heads to a row, whose queries all read one KV head: it walks pages of `page` positions of the
// chosen blocks in order. As keys and values are [blocks, num_heads, block_size] entries, those of
// head h are pages of one head: number (block * num_heads + h) * block_size / page + place / page.
struct ChooseBlocksArgs {
  static constexpr Op kOp = Op::kChooseBlocks;
  const StepCounts* counts;
  const void* q;                // [max_rows, num_heads, head_dim] of dtype
  const void* keys;             // [num_blocks, block_size, head_dim] of dtype
  const int32_t* positions;     // [max_rows]
  const int32_t* row_slot;      // [max_rows]
  const int32_t* block_tables;  // [slots, max_blocks]
  StepCounts* rows_of_heads;    // num_rows becomes the live rows times num_heads
  int32_t* pages;    // [max_rows * num_heads, top * choice / page]; what is behind `last` stays
  int32_t* last;     // [max_rows * num_heads] number of positions in the row's pages - 1
  int32_t* rows;     // [max_rows * num_heads] row i reads table i
  float* workspace;  // [kMaxScores]
  int32_t max_blocks;
  int32_t block_size;
  int32_t kv_begin;
  int32_t max_rows;
  int32_t num_heads;  // of KV and of q; at most kMaxIndexHeads
  int32_t head_dim;   // a multiple of kIndexDimStep, at most kMaxIndexDim
  int32_t choice;     // positions of a block that is chosen or not; at least num_heads
  int32_t page;       // chosen_page_size
  int32_t top;        // at most kMaxChosenBlocks
  int32_t first;
  int32_t nearest;            // at least 1; with `first` at most `top`
  DType dtype;                // kF32 or kBF16
  int32_t* begins = nullptr;  // as `pages`: the position with which each begins; or null
};

inline constexpr int kMaxChosenBlocks = 1024;

// Positions of a page: as many as lie side by side in the cache wherever a chosen block begins.
constexpr int32_t chosen_page_size(int32_t choice, int32_t block_size, int32_t kv_begin) {
  return std::gcd(std::gcd(choice, block_size), kv_begin);
}

// What a row sees, in blocks of `choice` positions.
struct SeenBlocks {
  int32_t begin;  // the first position
  int32_t end;    // behind the last
  int32_t count;
};
FT_HD inline SeenBlocks seen_blocks(const ChooseBlocksArgs& a, int32_t row) {
  const int32_t end = a.positions[row] + 1;
  const int32_t begin = a.kv_begin < end - 1 ? a.kv_begin : end - 1;
  return {begin, end, (end - begin + a.choice - 1) / a.choice};
}

// The rank of a block, the lowest first; those that are chosen whatever their scores are come
// before all others.
FT_HD inline uint32_t block_rank(const ChooseBlocksArgs& a, int32_t block, int32_t count,
                                 float score) {
  if (block < a.first || block >= count - a.nearest) return 0;
  const uint32_t turned = ~score_order(score);
  return turned == 0 ? 1 : turned;
}

// The page of a position of a slot for KV head `head`.
FT_HD inline int32_t chosen_page(const ChooseBlocksArgs& a, int32_t slot, int32_t head,
                                 int32_t position) {
  const int64_t table = int64_t{slot} * a.max_blocks;
  const int32_t block = a.block_tables[table + position / a.block_size];
  return (block * a.num_heads + head) * (a.block_size / a.page) + position % a.block_size / a.page;
}

// Writes that page as number `index` of all pages.
FT_HD inline void write_page(const ChooseBlocksArgs& a, int64_t index, int32_t slot, int32_t head,
                             int32_t position) {
  a.pages[index] = chosen_page(a, slot, head, position);
  if (a.begins != nullptr) a.begins[index] = position - position % a.page;
}

// Blocks of the longest sequence: scores of a row and head in the workspace.
FT_HD inline int64_t score_stride(const ChooseBlocksArgs& a) {
  return (int64_t{a.max_blocks} * a.block_size + a.choice - 1) / a.choice;
}

void choose_blocks(Queue& queue, const ChooseBlocksArgs& args);

}  // namespace foretoken
