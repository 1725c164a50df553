#include "kernels/latent/choose_entries.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/latent/cpu/index_product.h"

namespace foretoken::cpu {
namespace {

constexpr int kScoredAtOnce = 4096;
constexpr int kScoresOfTask = 1024;

// Candidates of a row, the best first: order of the score, turned, then the position.
struct Candidates {
  uint64_t ranked[kMaxChosen + kScoredAtOnce];
};

// The positions that a row sees.
struct SeenByRow {
  int begin;
  int count;
};
SeenByRow seen_by_row(const ChooseEntriesArgs& a, int64_t row) {
  const SeenKeys keys = seen_keys(a, a.positions[row]);
  return {keys.begin, keys.end - keys.begin};
}

FT_INLINE int64_t slot_at(const ChooseEntriesArgs& a, const int32_t* table, int position) {
  return int64_t{table[position / a.block_size]} * a.block_size + position % a.block_size;
}

// Scores of positions [begin, end).
template <class T>
FT_INLINE void score_positions(const ChooseEntriesArgs& a, int64_t row, int begin, int end,
                               float* scores) {
  const T* q = static_cast<const T*>(a.q) + row * a.num_heads * a.head_dim;
  const float* weights = a.weights + row * a.num_heads;
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  for (int position = begin; position < end; ++position) {
    const T* key = static_cast<const T*>(a.keys) + slot_at(a, table, position) * a.head_dim;
    float score = 0;
    for (int h = 0; h < a.num_heads; ++h) {
      const float product = index_product(q + int64_t{h} * a.head_dim, key, a.head_dim);
      score += weights[h] * (product < 0 ? 0.0f : product);
    }
    scores[position - begin] = score;
  }
}

FT_HOT void score_f32(const ChooseEntriesArgs& a, int64_t row, int begin, int end, float* scores) {
  score_positions<float>(a, row, begin, end, scores);
}
FT_HOT void score_bf16(const ChooseEntriesArgs& a, int64_t row, int begin, int end, float* scores) {
  score_positions<uint16_t>(a, row, begin, end, scores);
}

// Of rows [first, first + count), which see more than they choose, in tasks of few positions, so
// that one row with a long context keeps all threads busy.
void score_entries(const ChooseEntriesArgs& a, int64_t first, int64_t count, int64_t stride,
                   CpuPool& pool) {
  int most = 0;
  for (int64_t row = first; row < first + count; ++row) {
    const int seen = seen_by_row(a, row).count;
    if (seen > a.top) most = std::max(most, seen);
  }
  if (most == 0) return;
  const auto score = a.dtype == DType::kF32 ? score_f32 : score_bf16;
  const int64_t parts = (most + kScoresOfTask - 1) / kScoresOfTask;
  pool.parallel_for(count * parts, [&](int64_t index, int) {
    const int64_t row = index / parts;
    const SeenByRow seen = seen_by_row(a, first + row);
    const int begin = static_cast<int>(index % parts) * kScoresOfTask;
    if (seen.count <= a.top || begin >= seen.count) return;
    const int end = std::min(begin + kScoresOfTask, seen.count);
    score(a, first + row, seen.begin + begin, seen.begin + end, a.workspace + row * stride + begin);
  });
}

// The best of the positions, which are more than `top`, in their order, in `ranked`.
void choose_best(const ChooseEntriesArgs& a, const SeenByRow& seen, const float* scores,
                 uint64_t* ranked) {
  int count = 0;
  for (int i = 0; i < seen.count;) {
    const int next = std::min(seen.count, i + kScoredAtOnce);
    for (; i < next; ++i) {
      ranked[count++] =
          uint64_t{~score_order(scores[i])} << 32 | static_cast<uint32_t>(seen.begin + i);
    }
    if (count <= a.top) continue;
    std::nth_element(ranked, ranked + a.top - 1, ranked + count);
    count = a.top;
  }
  for (int i = 0; i < count; ++i) ranked[i] &= 0xffffffffu;
  std::sort(ranked, ranked + count);
}

// The positions of `count` chosen keys, all that are seen where none is ranked, and those behind
// the last whole key. Returns how many the rank holds.
int spread_entries(const ChooseEntriesArgs& a, int64_t row, const SeenByRow& seen, int count,
                   const uint64_t* ranked, int32_t* out) {
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  const int held = a.positions_each / a.context_size;
  int own = 0;
  for (int i = 0; i < count; ++i) {
    const int key = count < seen.count ? static_cast<int>(ranked[i]) : seen.begin + i;
    const int64_t first = slot_at(a, table, key) * held;
    for (int j = 0; j < held; ++j) out[own++] = static_cast<int32_t>(first + j);
  }
  const int32_t position = a.positions[row];
  if ((position + 1) % a.positions_each == 0) return own;
  const int64_t behind = slot_at(a, table, position / a.positions_each);
  const TailPositions tail = tail_positions(a, position, behind);
  for (int j = 0; j < tail.own; ++j) out[own++] = static_cast<int32_t>(tail.first + j);
  return own;
}

void write_entries(const ChooseEntriesArgs& a, int64_t row, const float* scores) {
  const SeenByRow seen = seen_by_row(a, row);
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  int32_t* out = a.entries + row * listed_entries(a);
  const int count = std::min(seen.count, a.top);
  uint64_t* ranked = thread_scratch<Candidates>().ranked;
  if (count < seen.count) choose_best(a, seen, scores, ranked);
  int own = a.spreads != 0 ? spread_entries(a, row, seen, count, ranked, out) : 0;
  for (int i = 0; a.spreads == 0 && i < count; ++i) {
    const int position = count < seen.count ? static_cast<int>(ranked[i]) : seen.begin + i;
    const int64_t slot = slot_at(a, table, position);
    if (slot % a.context_size != a.context_rank) continue;
    out[own++] = static_cast<int32_t>(slot / a.context_size);
  }
  a.last[row] = (own - 1) * a.context_size + a.context_rank;
  a.rows[row] = static_cast<int32_t>(row);
}

}  // namespace

void choose_entries(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ChooseEntriesArgs*>(args);
  const int64_t rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t stride = int64_t{a.max_blocks} * a.block_size;
  const int64_t room = std::max<int64_t>(1, kMaxScores / stride);
  for (int64_t first = 0; first < rows; first += room) {
    const int64_t count = std::min(room, rows - first);
    score_entries(a, first, count, stride, pool);
    pool.parallel_for(count, [&](int64_t row, int) {
      write_entries(a, first + row, a.workspace + row * stride);
    });
  }
}

}  // namespace foretoken::cpu
