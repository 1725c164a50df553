#include "kernels/latent/choose_blocks.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/latent/cpu/index_product.h"

namespace foretoken::cpu {
namespace {

constexpr int kRankedAtOnce = 4096;
constexpr int kScoredPositions = 1024;  // of a task, about

// Candidates of a row and head, the best first: rank, then the block.
struct BlockCandidates {
  uint64_t ranked[kMaxChosenBlocks + kRankedAtOnce];
};

// Rows whose scores have room at the same time, and where they lie.
struct ScoredRows {
  int64_t first;
  int64_t count;
  int64_t stride;  // scores of a head
};

FT_INLINE bool is_highest(float score, float best) { return score > best || score != score; }

// The scores of block `block` of a row for all heads.
template <class T>
FT_INLINE void score_block(const ChooseBlocksArgs& a, int64_t row, const SeenBlocks& seen,
                           int block, int64_t stride, float* scores) {
  const T* q = static_cast<const T*>(a.q) + row * a.num_heads * a.head_dim;
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  const int begin = seen.begin + block * a.choice;
  const int end = std::min(begin + a.choice, seen.end);
  for (int position = begin; position < end; ++position) {
    const int64_t entry =
        int64_t{table[position / a.block_size]} * a.block_size + position % a.block_size;
    const T* key = static_cast<const T*>(a.keys) + entry * a.head_dim;
    for (int h = 0; h < a.num_heads; ++h) {
      const float score = index_product(q + int64_t{h} * a.head_dim, key, a.head_dim);
      float& best = scores[h * stride + block];
      if (position == begin || is_highest(score, best)) best = score;
    }
  }
}

FT_HOT void score_block_f32(const ChooseBlocksArgs& a, int64_t row, const SeenBlocks& seen,
                            int block, int64_t stride, float* scores) {
  score_block<float>(a, row, seen, block, stride, scores);
}
FT_HOT void score_block_bf16(const ChooseBlocksArgs& a, int64_t row, const SeenBlocks& seen,
                             int block, int64_t stride, float* scores) {
  score_block<uint16_t>(a, row, seen, block, stride, scores);
}

// Tasks are parts of what a row sees, so that few rows with long contexts keep all threads busy.
void score_rows(const ChooseBlocksArgs& a, const ScoredRows& rows, CpuPool& pool) {
  int most = 0;
  for (int64_t r = 0; r < rows.count; ++r) {
    const SeenBlocks seen = seen_blocks(a, static_cast<int32_t>(rows.first + r));
    if (seen.count > a.top) most = std::max(most, seen.count);
  }
  if (most == 0) return;
  const auto run = a.dtype == DType::kF32 ? score_block_f32 : score_block_bf16;
  const int each = std::max(1, kScoredPositions / a.choice);
  const int64_t parts = (most + each - 1) / each;
  pool.parallel_for(rows.count * parts, [&](int64_t index, int) {
    const int64_t row = index / parts;
    const SeenBlocks seen = seen_blocks(a, static_cast<int32_t>(rows.first + row));
    if (seen.count <= a.top) return;
    const int begin = static_cast<int>(index % parts) * each;
    const int end = std::min(begin + each, seen.count);
    float* scores = a.workspace + row * a.num_heads * rows.stride;
    for (int block = begin; block < end; ++block) {
      run(a, rows.first + row, seen, block, rows.stride, scores);
    }
  });
}

// The numbers of the best `top` of more blocks, ascending, in `ranked`.
void choose_ranked(const ChooseBlocksArgs& a, const SeenBlocks& seen, const float* scores,
                   uint64_t* ranked) {
  int count = 0;
  for (int block = 0; block < seen.count;) {
    const int next = std::min(seen.count, block + kRankedAtOnce);
    for (; block < next; ++block) {
      const uint64_t rank = block_rank(a, block, seen.count, scores[block]);
      ranked[count++] = rank << 32 | static_cast<uint32_t>(block);
    }
    if (count <= a.top) continue;
    std::nth_element(ranked, ranked + a.top - 1, ranked + count);
    count = a.top;
  }
  for (int i = 0; i < count; ++i) ranked[i] &= 0xffffffffu;
  std::sort(ranked, ranked + count);
}

void write_pages(const ChooseBlocksArgs& a, int32_t row, int32_t head, const float* scores) {
  const SeenBlocks seen = seen_blocks(a, row);
  const int count = std::min(seen.count, a.top);
  uint64_t* ranked = thread_scratch<BlockCandidates>().ranked;
  const bool all = count == seen.count;
  if (!all) choose_ranked(a, seen, scores, ranked);
  const int64_t out = int64_t{row} * a.num_heads + head;
  int64_t index = out * a.top * (a.choice / a.page);
  int32_t last = -1;
  for (int i = 0; i < count; ++i) {
    const int begin = seen.begin + (all ? i : static_cast<int>(ranked[i])) * a.choice;
    const int end = std::min(begin + a.choice, seen.end);
    for (int position = begin; position < end; position += a.page) {
      write_page(a, index++, a.row_slot[row], head, position);
    }
    last += end - begin;
  }
  a.last[out] = last;
  a.rows[out] = static_cast<int32_t>(out);
}

}  // namespace

void choose_blocks(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ChooseBlocksArgs*>(args);
  const int64_t rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  *a.rows_of_heads = *a.counts;
  a.rows_of_heads->num_rows = static_cast<int32_t>(rows) * a.num_heads;
  const int64_t stride = score_stride(a);
  const int64_t room = std::max<int64_t>(1, kMaxScores / (stride * a.num_heads));
  for (int64_t first = 0; first < rows; first += room) {
    const ScoredRows scored{first, std::min(room, rows - first), stride};
    score_rows(a, scored, pool);
    pool.parallel_for(scored.count * a.num_heads, [&](int64_t index, int) {
      const auto row = static_cast<int32_t>(first + index / a.num_heads);
      const auto head = static_cast<int32_t>(index % a.num_heads);
      write_pages(a, row, head, a.workspace + index * stride);
    });
  }
}

}  // namespace foretoken::cpu
