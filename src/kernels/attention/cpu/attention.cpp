#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/attention/cpu/attention_divisor.h"
#include "kernels/attention/cpu/attention_int8.h"
#include "kernels/attention/cpu/attention_tile.h"
#include "kernels/attention/cpu/flex_scores.h"
#include "kernels/attention/cpu/kv_entry.h"
#include "kernels/attention/cpu/latent_codes.h"
#include "kernels/attention/cpu/score_end.h"
#include "kernels/cpu/lane_pair.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/flex/flex_program.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

constexpr int kHeadsAtOnce = 8;  // query heads of one KV head that share its loads

// Softmax state of the query heads in work: acc / sum is the attention so far, relative to max.
struct HeadState {
  float q[kHeadsAtOnce][kMaxHeadDim];
  float acc[kHeadsAtOnce][kMaxHeadDim];
  float max[kHeadsAtOnce];
  float sum[kHeadsAtOnce];
  float scores[kHeadsAtOnce][kAttentionSplit];
};

// Entries [begin, end) of one row and KV head, inside one split. Of codes that were widened,
// keys and values lie side by side, head_dim elements each.
struct Split {
  const int32_t* table;
  int32_t kv_head;
  int32_t begin;
  int32_t end;
  const void* keys = nullptr;
  const void* values = nullptr;
};

// A query head of the op and its row.
struct QueryHead {
  int64_t row;
  int head;
  int prompt_end;  // as of FlexPlace
};

// What the codes of a split stand for, without the scales of heads.
template <class T>
struct WidenedSplit {
  T keys[kAttentionSplit * kMaxHeadDim];
  T values[kAttentionSplit * kMaxHeadDim];
};

// The entries of positions [pos, pos + count), which lie in one block and hence side by side.
template <class T>
struct Run {
  const T* first;
  int count;
};

// widened: of the split, or null.
template <class T>
FT_INLINE Run<T> run_at(const KvLayer& kv, const void* cache, const void* widened,
                        const Split& split, int pos) {
  if (widened != nullptr) {
    const int64_t at = int64_t{pos - split.begin} * kv.head_dim;
    return {static_cast<const T*>(widened) + at, split.end - pos};
  }
  const int64_t entry = kv_entry_at(kv, split.table, split.kv_head, pos);
  const int left = kv.block_size - pos % kv.block_size;
  return {static_cast<const T*>(cache) + entry * kv.head_dim,
          left < split.end - pos ? left : split.end - pos};
}

// V: Lanes or LanePair, here and below.
template <class V, class T>
FT_INLINE float dot(const float* q, const T* k, int n) {
  V sum = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    V a, b;
    load(a, q + i);
    load(b, k + i);
    add_product(sum, a, b);
  }
  float total = sum_lanes(sum);
  for (; i < n; ++i) total += q[i] * load_one(k + i);
  return total;
}

template <class T>
FT_INLINE void widen_part(const KvLayer& kv, const void* cache, const Split& split, T* out) {
  const int64_t bytes = kv_entry_bytes(kv);
  for (int pos = split.begin; pos < split.end; ++pos, out += kv.head_dim) {
    const int64_t entry = kv_entry_at(kv, split.table, split.kv_head, pos);
    widen_entry(kv, static_cast<const std::byte*>(cache) + entry * bytes, kv.head_dim, out);
  }
}

template <class T>
FT_INLINE void widen_split(const KvLayer& kv, WidenedSplit<T>& room, Split& split) {
  widen_part(kv, kv.k, split, room.keys);
  split.keys = split.values = room.keys;
  if (kv.value_dim > 0) return;
  widen_part(kv, kv.v, split, room.values);
  split.values = room.values;
}

// scale: of AttentionArgs, times that of the codes.
template <class V, class T>
FT_INLINE void score_split(const AttentionArgs& a, const Split& split, float scale, int heads,
                           HeadState& s) {
  for (int pos = split.begin; pos < split.end;) {
    const Run<T> run = run_at<T>(a.kv, a.kv.k, split.keys, split, pos);
    for (int i = 0; i < run.count; ++i) {
      const T* k = run.first + i * a.kv.head_dim;
      for (int h = 0; h < heads; ++h) {
        s.scores[h][pos + i - split.begin] = dot<V>(s.q[h], k, a.kv.head_dim) * scale;
      }
    }
    pos += run.count;
  }
}

// Turns scores into exponentials relative to the split's maximum; returns that and their sum.
FT_INLINE void exponentiate(float* scores, int count, float& max, float& sum) {
  max = scores[0];
  for (int j = 1; j < count; ++j) max = scores[j] > max ? scores[j] : max;
  int i = 0;
  for (; i + kOctet <= count; i += kOctet) {
    Octet octet;
    load(octet, scores + i);
    exp_nonpositive(octet, octet - max);
    store(scores + i, octet);
  }
  for (; i < count; ++i) scores[i] = sample_math::exp_nonpositive(scores[i] - max);
  sum = 0;
  for (i = 0; i < count; ++i) sum += scores[i];
}

// out[d, d + kVectors * kLanes) = sum of weights * v over the split, positions in order.
template <int kVectors, class V, class T>
FT_INLINE void weigh_columns(const AttentionArgs& a, const Split& split, const float* weights,
                             int d, float* out) {
  V sum[kVectors] = {};
  for (int pos = split.begin; pos < split.end;) {
    const Run<T> run = run_at<T>(a.kv, a.kv.v, split.values, split, pos);
    for (int i = 0; i < run.count; ++i) {
      const T* v = run.first + i * a.kv.head_dim + d;
      const float weight = weights[pos + i - split.begin];
      for (int j = 0; j < kVectors; ++j) {
        V value;
        load(value, v + j * kLanes);
        add_product(sum[j], value, weight);
      }
    }
    pos += run.count;
  }
  for (int j = 0; j < kVectors; ++j) store(out + d + j * kLanes, sum[j]);
}

template <class T>
FT_INLINE void weigh_column(const AttentionArgs& a, const Split& split, const float* weights, int d,
                            float* out) {
  out[d] = 0;
  for (int pos = split.begin; pos < split.end;) {
    const Run<T> run = run_at<T>(a.kv, a.kv.v, split.values, split, pos);
    for (int i = 0; i < run.count; ++i) {
      out[d] += load_one(run.first + i * a.kv.head_dim + d) * weights[pos + i - split.begin];
    }
    pos += run.count;
  }
}

template <class V, class T>
FT_INLINE void weigh_values(const AttentionArgs& a, const Split& split, const float* weights,
                            float* out) {
  const int dim = a.kv.value_size();
  int d = 0;
  for (; d + 4 * kLanes <= dim; d += 4 * kLanes) weigh_columns<4, V, T>(a, split, weights, d, out);
  for (; d + kLanes <= dim; d += kLanes) weigh_columns<1, V, T>(a, split, weights, d, out);
  for (; d < dim; ++d) weigh_column<T>(a, split, weights, d, out);
}

template <class V, class T>
FT_INLINE void merge_split(const AttentionArgs& a, const Split& split, const QueryHead& of, int h,
                           HeadState& s) {
  float part[kMaxHeadDim];
  float max, sum;
  const int count = split.end - split.begin;
  end_scores(score_end(a, of.head, a.positions[of.row], split.begin), s.scores[h], count);
  if (a.flex != nullptr) {
    const FlexScores scores{s.scores[h], count, of.row, split.begin, of.head, of.prompt_end};
    if (!apply_flex(a, scores)) return;
    weigh_flex(s.scores[h], count, max, sum);
  } else {
    exponentiate(s.scores[h], count, max, sum);
  }
  weigh_values<V, T>(a, split, s.scores[h], part);
  const float new_max = max > s.max[h] ? max : s.max[h];
  const float keep = sample_math::exp_nonpositive(s.max[h] - new_max);
  const float take = sample_math::exp_nonpositive(max - new_max);
  for (int d = 0; d < a.kv.value_size(); ++d) s.acc[h][d] = s.acc[h][d] * keep + part[d] * take;
  s.sum[h] = s.sum[h] * keep + sum * take;
  s.max[h] = new_max;
}

// widened: room for codes; null: there are none.
template <class V, class T>
FT_INLINE void attend(const AttentionArgs& a, int64_t row, int32_t kv_head, int first, int heads,
                      WidenedSplit<T>* widened) {
  HeadState s;
  const int dim = a.kv.head_dim, value_dim = a.kv.value_size();
  const int64_t at = row * a.num_heads + first;
  for (int h = 0; h < heads; ++h) {
    const T* q = static_cast<const T*>(a.q) + (at + h) * dim;
    for (int d = 0; d < dim; ++d) s.q[h][d] = load_one(q + d);
    for (int d = 0; d < value_dim; ++d) s.acc[h][d] = 0;
    s.max[h] = -std::numeric_limits<float>::infinity();
    s.sum[h] = 0;
  }
  const int of_prompt = a.flex != nullptr && a.flex->sees_prompts ? prompt_end(a, row) : 0;
  const int begin = seen_by(a, row).begin;
  const int end = std::max(seen_by(a, row).end, entries_before(a.kv, of_prompt));
  const int32_t* table = a.block_tables + int64_t{a.row_slot[row]} * a.max_blocks;
  const int32_t of_scales = head_of_scales(a, row, kv_head);
  const float scale = a.scale * key_scale(a.kv, of_scales);
  for (int pos = begin; pos < end;) {
    const int split_end = (pos / kAttentionSplit + 1) * kAttentionSplit;
    Split split{table, kv_head, pos, split_end < end ? split_end : end};
    if (widened != nullptr) widen_split(a.kv, *widened, split);
    score_split<V, T>(a, split, scale, heads, s);
    for (int h = 0; h < heads; ++h) {
      merge_split<V, T>(a, split, {row, first + h, of_prompt}, h, s);
    }
    pos = split.end;
  }
  const float of_values = value_scale(a.kv, of_scales);
  for (int h = 0; h < heads; ++h) {
    if (a.states != nullptr) {
      store_state(a, row, first + h, {s.acc[h], s.max[h], s.sum[h]}, of_values);
      continue;
    }
    T* out = static_cast<T*>(a.out) + (at + h) * value_dim;
    const float whole = attention_divisor(a, first + h, s.max[h], s.sum[h]);
    const float divisor = a.flex != nullptr && s.sum[h] == 0 ? 1.0f : whole;
    for (int d = 0; d < value_dim; ++d) store_one(out + d, s.acc[h][d] / divisor * of_values);
  }
}

FT_HOT void attend_f32(const AttentionArgs& a, int64_t row, int32_t kv_head, int first, int heads) {
  attend<Lanes, float>(a, row, kv_head, first, heads, nullptr);
}
FT_HOT void attend_bf16(const AttentionArgs& a, int64_t row, int32_t kv_head, int first,
                        int heads) {
  attend<Lanes, uint16_t>(a, row, kv_head, first, heads, nullptr);
}
FT_HOT void attend_f32_codes(const AttentionArgs& a, int64_t row, int32_t kv_head, int first,
                             int heads) {
  attend<Lanes, float>(a, row, kv_head, first, heads, &thread_scratch<WidenedSplit<float>>());
}
FT_HOT void attend_bf16_codes(const AttentionArgs& a, int64_t row, int32_t kv_head, int first,
                              int heads) {
  attend<Lanes, uint16_t>(a, row, kv_head, first, heads, &thread_scratch<WidenedSplit<uint16_t>>());
}
// As the four above.
template <class T>
FT_AVX2 void attend_pairs(const AttentionArgs& a, int64_t row, int32_t kv_head, int first,
                          int heads) {
  attend<LanePair, T>(a, row, kv_head, first, heads, nullptr);
}
template <class T>
FT_AVX2 void attend_pairs_codes(const AttentionArgs& a, int64_t row, int32_t kv_head, int first,
                                int heads) {
  attend<LanePair, T>(a, row, kv_head, first, heads, &thread_scratch<WidenedSplit<T>>());
}

auto attend_function(const KvLayer& kv) {
  static const bool pairs = has_lane_pairs();
  const bool is_f32 = kv.dtype == DType::kF32;
  if (kv.format != KvFormat::kPlain) {
    if (pairs) return is_f32 ? attend_pairs_codes<float> : attend_pairs_codes<uint16_t>;
    return is_f32 ? attend_f32_codes : attend_bf16_codes;
  }
  if (pairs) return is_f32 ? attend_pairs<float> : attend_pairs<uint16_t>;
  return is_f32 ? attend_f32 : attend_bf16;
}

// Whether a row continues the tile of the row before it. Tiles end at multiples of `most` rows and
// where another run of one sequence's positions begins.
bool continues_tile(const AttentionArgs& a, int64_t row, int most) {
  return row % most != 0 && a.row_slot[row] == a.row_slot[row - 1] &&
         a.positions[row] == a.positions[row - 1] + 1;
}

// Heads of latent attention share one KV head: what one tile cannot take, other threads do.
template <class Attend>
void attend_tiles(const AttentionArgs& a, int rows, CpuPool& pool, Attend&& attend_one) {
  const int group = a.num_heads / a.kv.num_kv_heads;
  const int heads = std::min(group, kMaxTileQueries);
  const int parts = (group + heads - 1) / heads;
  const int most = kMaxTileQueries / heads;
  const int columns = a.kv.num_kv_heads * parts;
  pool.parallel_for(int64_t{rows} * columns, [&](int64_t index, int) {
    const int64_t row = index / columns;
    if (continues_tile(a, row, most)) return;
    int count = 1;
    while (row + count < rows && continues_tile(a, row + count, most)) ++count;
    const auto kv_head = static_cast<int32_t>(index % columns / parts);
    const int h = static_cast<int>(index % parts) * heads;
    attend_one({row, count, kv_head, kv_head * group + h, std::min(heads, group - h)});
  });
}

// The heads of a row and KV head, kHeadsAtOnce in a task.
void attend_rows(const AttentionArgs& a, int rows, CpuPool& pool) {
  const int group = a.num_heads / a.kv.num_kv_heads;
  const int parts = (group + kHeadsAtOnce - 1) / kHeadsAtOnce;
  const int columns = a.kv.num_kv_heads * parts;
  const auto run = attend_function(a.kv);
  pool.parallel_for(int64_t{rows} * columns, [&](int64_t index, int) {
    const auto kv_head = static_cast<int32_t>(index % columns / parts);
    const int h = static_cast<int>(index % parts) * kHeadsAtOnce;
    run(a, index / columns, kv_head, kv_head * group + h, std::min(kHeadsAtOnce, group - h));
  });
}

}  // namespace

void attention(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const AttentionArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  if (a.kv.format == KvFormat::kInt8 && a.kv.value_dim == 0) {
    const Int8Kernels& kernels = int8_kernels().front();
    return attend_tiles(a, rows, pool,
                        [&](const AttentionTile& tile) { attend_int8_tile(kernels, a, tile); });
  }
  if (a.flex == nullptr && has_attention_tiles(a.kv)) {
    return attend_tiles(a, rows, pool, [&](const AttentionTile& tile) { attend_tile(a, tile); });
  }
  attend_rows(a, rows, pool);
}

}  // namespace foretoken::cpu
