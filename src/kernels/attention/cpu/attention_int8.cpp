#include "kernels/attention/cpu/attention_int8.h"

#include <algorithm>
#include <limits>

#include "kernels/attention/cpu/attention_divisor.h"
#include "kernels/attention/cpu/flex_scores.h"
#include "kernels/attention/cpu/int8_entry.h"
#include "kernels/attention/cpu/kv_entry.h"
#include "kernels/attention/cpu/score_end.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/flex/flex_program.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

constexpr float kMaxQueryCode = 32767.0f;

// Of the tile: its queries, what its rows see and what was summed so far. Of the split at work: its
// entries, their scales, and of each query dots, then softmax weights, then the sums.
struct Int8Scratch {
  alignas(64) int16_t queries[kMaxTileQueries * kMaxHeadDim];
  alignas(64) float acc[kMaxTileQueries * kMaxHeadDim];
  float query_scale[kMaxTileQueries];
  float max[kMaxTileQueries];
  float sum[kMaxTileQueries];
  SeenPositions seen[kMaxTileQueries];
  int prompt_end[kMaxTileQueries];  // as of FlexPlace
  const int8_t* keys[kAttentionSplit];
  const int8_t* values[kAttentionSplit];
  alignas(64) float key_scale[kAttentionSplit];
  alignas(64) float value_scale[kAttentionSplit];
  alignas(64) int32_t dots[kMaxTileQueries * kAttentionSplit];
  alignas(64) float weights[kMaxTileQueries * kAttentionSplit];
  alignas(64) float part[kMaxTileQueries * kMaxHeadDim];
};

// Positions [begin, end), which lie in one split.
struct Int8Split {
  const int32_t* table;
  int begin;
  int end;
};

template <class T>
FT_INLINE void begin_query(const T* from, int dim, int query, Int8Scratch& s) {
  float x[kMaxHeadDim];
  for (int d = 0; d < dim; ++d) x[d] = load_one(from + d);
  const CodeScale found = code_scale(x, dim, kMaxQueryCode);
  store_codes(x, dim, found.inverse, s.queries + query * dim);
  s.query_scale[query] = found.scale;
  for (int d = 0; d < dim; ++d) s.acc[query * dim + d] = 0;
  s.max[query] = -std::numeric_limits<float>::infinity();
  s.sum[query] = 0;
}

template <class T>
FT_INLINE void begin_int8_tile(const AttentionArgs& a, const AttentionTile& tile, Int8Scratch& s) {
  for (int q = 0; q < tile.rows * tile.heads; ++q) {
    const int64_t row = tile.first_row + q / tile.heads;
    const int64_t head = row * a.num_heads + tile.first_head + q % tile.heads;
    begin_query(static_cast<const T*>(a.q) + head * a.kv.head_dim, a.kv.head_dim, q, s);
  }
}

FT_HOT void begin_tile_f32(const AttentionArgs& a, const AttentionTile& tile, Int8Scratch& s) {
  begin_int8_tile<float>(a, tile, s);
}
FT_HOT void begin_tile_bf16(const AttentionArgs& a, const AttentionTile& tile, Int8Scratch& s) {
  begin_int8_tile<uint16_t>(a, tile, s);
}

// What each row sees, that of its prompt behind it, too, where the op's program knows prompts;
// returns what any of them does.
SeenPositions find_seen(const AttentionArgs& a, const AttentionTile& tile, Int8Scratch& s) {
  const bool sees_prompts = a.flex != nullptr && a.flex->sees_prompts;
  SeenPositions all = seen_by(a, tile);
  for (int r = 0; r < tile.rows; ++r) {
    s.seen[r] = seen_by(a, tile.first_row + r);
    s.prompt_end[r] = sees_prompts ? prompt_end(a, tile.first_row + r) : 0;
    s.seen[r].end = std::max(s.seen[r].end, entries_before(a.kv, s.prompt_end[r]));
    all.end = std::max(all.end, s.seen[r].end);
  }
  return all;
}

void find_entries(const KvLayer& kv, const Int8Split& split, int32_t kv_head, Int8Scratch& s) {
  const int64_t bytes = kv_entry_bytes(kv);
  for (int pos = split.begin; pos < split.end; ++pos) {
    const int64_t index = kv_entry_at(kv, split.table, kv_head, pos);
    const int i = pos - split.begin;
    s.keys[i] = static_cast<const int8_t*>(kv.k) + index * bytes;
    s.values[i] = static_cast<const int8_t*>(kv.v) + index * bytes;
    s.key_scale[i] = int8_entry_scale(s.keys[i], kv.head_dim);
    s.value_scale[i] = int8_entry_scale(s.values[i], kv.head_dim);
  }
}

FT_INLINE float highest_of(const float* scores, int count) {
  float max = scores[0];
  int i = 0;
  if (count >= kOctet) {
    Octet highest;
    load(highest, scores);
    for (i = kOctet; i + kOctet <= count; i += kOctet) {
      Octet octet;
      load(octet, scores + i);
      highest = octet > highest ? octet : highest;
    }
    for (int lane = 0; lane < kOctet; ++lane) max = highest[lane] > max ? highest[lane] : max;
  }
  for (; i < count; ++i) max = scores[i] > max ? scores[i] : max;
  return max;
}

// Turns scores into exponentials relative to `max`. Returns their sum, whose order depends on the
// number of scores alone.
FT_INLINE float exponentiate_int8(float* scores, int count, float max) {
  Octet sums = {};
  int i = 0;
  for (; i + kOctet <= count; i += kOctet) {
    Octet octet;
    load(octet, scores + i);
    exp_nonpositive(octet, octet - max);
    store(scores + i, octet);
    sums += octet;
  }
  float sum = 0;
  for (int lane = 0; lane < kOctet; ++lane) sum += sums[lane];
  for (; i < count; ++i) {
    scores[i] = sample_math::exp_nonpositive(scores[i] - max);
    sum += scores[i];
  }
  return sum;
}

struct SoftSums {
  float max;
  float sum;
};

// What a query of the tile sees of the split at work: `count` positions from its `begin` on.
struct QueryPart {
  int query;
  int begin;
  int count;
};

// From dots to scores, which stand where weights will.
FT_HOT void score_part(Int8Scratch& s, const QueryPart& part, float scale, const ScoreEnd& end) {
  const int at = part.query * kAttentionSplit + part.begin;
  for (int i = 0; i < part.count; ++i) {
    s.weights[at + i] = static_cast<float>(s.dots[at + i]) * s.key_scale[part.begin + i] * scale;
  }
  end_scores(end, s.weights + at, part.count);
}

// From scores to weights of the codes of values.
FT_HOT SoftSums soften(Int8Scratch& s, const QueryPart& part) {
  float* weights = s.weights + part.query * kAttentionSplit + part.begin;
  const float max = highest_of(weights, part.count);
  const SoftSums soft{max, exponentiate_int8(weights, part.count, max)};
  for (int i = 0; i < part.count; ++i) weights[i] *= s.value_scale[part.begin + i];
  return soft;
}

// The same where the op's program changes scores and hides positions, which weigh nothing whatever
// their values are.
SoftSums soften_flex(const AttentionArgs& a, const FlexScores& x, const float* value_scale) {
  SoftSums soft{0, 0};
  if (!apply_flex(a, x)) {
    std::fill_n(x.scores, x.count, 0.0f);
    return soft;
  }
  weigh_flex(x.scores, x.count, soft.max, soft.sum);
  for (int i = 0; i < x.count; ++i) {
    x.scores[i] = x.scores[i] == 0 ? 0.0f : x.scores[i] * value_scale[i];
  }
  return soft;
}

FT_HOT void merge_int8_part(float* acc, const float* part, float keep, float take, int dim) {
  for (int d = 0; d < dim; ++d) acc[d] = acc[d] * keep + part[d] * take;
}

// A query that sees nothing of the split has a sum of zero. Codes are finite, so that weights of
// zero hide what a query does not see.
void soften_int8_split(const AttentionArgs& a, const AttentionTile& tile, const Int8Split& split,
                       SoftSums* soft, Int8Scratch& s) {
  const int count = split.end - split.begin;
  for (int q = 0; q < tile.rows * tile.heads; ++q) {
    const int row = q / tile.heads, head = tile.first_head + q % tile.heads;
    const int begin = std::clamp(s.seen[row].begin - split.begin, 0, count);
    const int end = std::clamp(s.seen[row].end - split.begin, begin, count);
    float* weights = s.weights + q * kAttentionSplit;
    std::fill(weights, weights + begin, 0.0f);
    std::fill(weights + end, weights + count, 0.0f);
    soft[q] = {0, 0};
    if (begin == end) continue;
    const QueryPart part{q, begin, end - begin};
    const int position = a.positions[tile.first_row + row], first = split.begin + begin;
    score_part(s, part, s.query_scale[q] * a.scale, score_end(a, head, position, first));
    if (a.flex == nullptr) {
      soft[q] = soften(s, part);
    } else {
      const FlexScores scores{weights + begin, part.count, tile.first_row + row,
                              first,           head,       s.prompt_end[row]};
      soft[q] = soften_flex(a, scores, s.value_scale + begin);
    }
  }
}

void merge_int8_split(const SoftSums* soft, int queries, int dim, Int8Scratch& s) {
  for (int q = 0; q < queries; ++q) {
    if (soft[q].sum == 0) continue;
    const float max = std::max(s.max[q], soft[q].max);
    const float keep = sample_math::exp_nonpositive(s.max[q] - max);
    const float take = sample_math::exp_nonpositive(soft[q].max - max);
    merge_int8_part(s.acc + q * dim, s.part + q * dim, keep, take, dim);
    s.sum[q] = s.sum[q] * keep + soft[q].sum * take;
    s.max[q] = max;
  }
}

void attend_split(const Int8Kernels& kernels, const AttentionArgs& a, const AttentionTile& tile,
                  const Int8Split& split, Int8Scratch& s) {
  const int count = split.end - split.begin, dim = a.kv.head_dim;
  const int queries = tile.rows * tile.heads;
  SoftSums soft[kMaxTileQueries];
  find_entries(a.kv, split, tile.kv_head, s);
  kernels.score({s.keys, count, dim}, {s.queries, dim, s.dots, kAttentionSplit, queries});
  soften_int8_split(a, tile, split, soft, s);
  kernels.weigh({s.values, count, dim}, {s.weights, kAttentionSplit, s.part, dim, queries});
  merge_int8_split(soft, queries, dim, s);
}

template <class T>
FT_INLINE void divide_row(const float* acc, float sum, int dim, T* out) {
  for (int d = 0; d < dim; ++d) store_one(out + d, acc[d] / sum);
}

FT_HOT void write_f32(const float* acc, float sum, int dim, float* out) {
  divide_row(acc, sum, dim, out);
}
FT_HOT void write_bf16(const float* acc, float sum, int dim, uint16_t* out) {
  divide_row(acc, sum, dim, out);
}

}  // namespace

void attend_int8_tile(const Int8Kernels& kernels, const AttentionArgs& a,
                      const AttentionTile& tile) {
  Int8Scratch& s = thread_scratch<Int8Scratch>();
  const bool is_f32 = a.kv.dtype == DType::kF32;
  is_f32 ? begin_tile_f32(a, tile, s) : begin_tile_bf16(a, tile, s);
  const SeenPositions all = find_seen(a, tile, s);
  const int32_t* table = a.block_tables + int64_t{a.row_slot[tile.first_row]} * a.max_blocks;
  for (int pos = all.begin; pos < all.end;) {
    const int end = std::min((pos / kAttentionSplit + 1) * kAttentionSplit, all.end);
    attend_split(kernels, a, tile, {table, pos, end}, s);
    pos = end;
  }
  const int dim = a.kv.head_dim;
  for (int q = 0; q < tile.rows * tile.heads; ++q) {
    const int64_t row = tile.first_row + q / tile.heads;
    const int head = tile.first_head + q % tile.heads;
    const int64_t at = (row * a.num_heads + head) * dim;
    const float* acc = s.acc + q * dim;
    if (a.states != nullptr) {
      store_state(a, row, head, {acc, s.max[q], s.sum[q]}, 1);
      continue;
    }
    const float whole = attention_divisor(a, head, s.max[q], s.sum[q]);
    const float divisor = a.flex != nullptr && s.sum[q] == 0 ? 1.0f : whole;
    if (is_f32) {
      write_f32(acc, divisor, dim, static_cast<float*>(a.out) + at);
    } else {
      write_bf16(acc, divisor, dim, static_cast<uint16_t*>(a.out) + at);
    }
  }
}

}  // namespace foretoken::cpu
