#include "kernels/latent/choose_entries.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"

namespace foretoken::cpu {
namespace {

constexpr int kScoredAtOnce = 4096;

// Candidates of a row, the best first: order of the score, turned, then the position.
struct Candidates {
  uint64_t ranked[kMaxChosen + kScoredAtOnce];
};

template <class T>
FT_INLINE float index_product(const T* q, const T* key, int dim) {
  Lanes sum = {};
  for (int i = 0; i < dim; i += kLanes) {
    Lanes a, b;
    load(a, q + i);
    load(b, key + i);
    sum += a * b;
  }
  return sum_lanes(sum);
}

FT_INLINE int64_t entry_at(const ChooseEntriesArgs& a, const int32_t* table, int position) {
  return int64_t{table[position / a.block_size]} * a.block_size + position % a.block_size;
}

// Ranks positions [begin, end).
template <class T>
FT_INLINE void rank_positions(const ChooseEntriesArgs& a, int64_t row, int begin, int end,
                              uint64_t* ranked) {
  const T* q = static_cast<const T*>(a.q) + row * a.num_heads * a.head_dim;
  const float* weights = a.weights + row * a.num_heads;
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  for (int position = begin; position < end; ++position) {
    const T* key = static_cast<const T*>(a.keys) + entry_at(a, table, position) * a.head_dim;
    float score = 0;
    for (int h = 0; h < a.num_heads; ++h) {
      const float product = index_product(q + int64_t{h} * a.head_dim, key, a.head_dim);
      score += weights[h] * (product < 0 ? 0.0f : product);
    }
    ranked[position - begin] =
        (uint64_t{~score_order(score)} << 32) | static_cast<uint32_t>(position);
  }
}

FT_HOT void rank_f32(const ChooseEntriesArgs& a, int64_t row, int begin, int end,
                     uint64_t* ranked) {
  rank_positions<float>(a, row, begin, end, ranked);
}
FT_HOT void rank_bf16(const ChooseEntriesArgs& a, int64_t row, int begin, int end,
                      uint64_t* ranked) {
  rank_positions<uint16_t>(a, row, begin, end, ranked);
}

// The best of positions [begin, end), which are more than `top`, in the order of positions.
void choose_best(const ChooseEntriesArgs& a, int64_t row, int begin, int end, uint64_t* ranked) {
  const auto rank = a.dtype == DType::kF32 ? rank_f32 : rank_bf16;
  int count = 0;
  for (int position = begin; position < end;) {
    const int next = std::min(end, position + kScoredAtOnce);
    rank(a, row, position, next, ranked + count);
    count += next - position;
    position = next;
    if (count <= a.top) continue;
    std::nth_element(ranked, ranked + a.top - 1, ranked + count);
    count = a.top;
  }
  for (int i = 0; i < count; ++i) ranked[i] &= 0xffffffffu;
  std::sort(ranked, ranked + count);
}

void choose_row(const ChooseEntriesArgs& a, int64_t row) {
  const int position = a.positions[row];
  const int begin = std::min(a.kv_begin, position), end = position + 1;
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  int32_t* out = a.entries + row * a.top;
  const int count = std::min(end - begin, a.top);
  a.last[row] = count - 1;
  a.rows[row] = static_cast<int32_t>(row);
  if (count == end - begin) {
    for (int i = 0; i < count; ++i) {
      out[i] = static_cast<int32_t>(entry_at(a, table, begin + i));
    }
    return;
  }
  uint64_t* ranked = thread_scratch<Candidates>().ranked;
  choose_best(a, row, begin, end, ranked);
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<int32_t>(entry_at(a, table, static_cast<int>(ranked[i])));
  }
}

}  // namespace

void choose_entries(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ChooseEntriesArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  pool.parallel_for(rows, [&](int64_t row, int) { choose_row(a, row); });
}

}  // namespace foretoken::cpu
