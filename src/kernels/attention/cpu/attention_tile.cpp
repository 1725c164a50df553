#include "kernels/attention/cpu/attention_tile.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "kernels/attention/cpu/attention_divisor.h"
#include "kernels/attention/cpu/attention_lanes.h"
#include "kernels/attention/cpu/kv_entry.h"
#include "kernels/attention/cpu/latent_codes.h"
#include "kernels/attention/cpu/score_end.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/gemm/cpu/bf16_kernels.h"
#include "kernels/sample_math.h"

#if !defined(__x86_64__)
namespace foretoken::cpu {
bool has_attention_tiles(const KvLayer&) { return false; }
void attend_tile(const AttentionArgs&, const AttentionTile&) { FT_CHECK(false); }
}  // namespace foretoken::cpu
#else

namespace foretoken::cpu {
namespace {

constexpr int kBlockCols = kBf16Tiles * kBf16Lanes;
constexpr int64_t kTileElements = kBf16Step * kBf16Lanes;

// What a tile needs: of the split at work, packed keys and values, scores and weights; of the tile,
// the queries and what was summed so far.
struct Scratch {
  alignas(64) uint16_t queries[kMaxTileQueries * kMaxHeadDim];
  alignas(64) uint16_t keys[kAttentionSplit * kMaxHeadDim];
  alignas(64) uint16_t values[kAttentionSplit * kMaxHeadDim];
  alignas(64) uint16_t weights[kMaxTileQueries * kAttentionSplit];
  alignas(64) float scores[kMaxTileQueries * kAttentionSplit];
  alignas(64) float part[kMaxTileQueries * kMaxHeadDim];
  alignas(64) float acc[kMaxTileQueries * kMaxHeadDim];
  alignas(64) uint16_t widened[kKeysAtOnce * kMaxHeadDim];  // entries of codes
  float max[kMaxTileQueries];
  float sum[kMaxTileQueries];
};

const AttentionLanes& lanes() { return attention_lanes().front(); }

// A split, and the part of it that some row of the tile sees, from its beginning on.
struct TileSplit {
  const int32_t* table;
  int base;
  int begin;
  int end;
};

const std::byte* entry_at(const KvLayer& kv, const void* cache, const TileSplit& split,
                          int32_t kv_head, int offset) {
  if (offset < split.begin || offset >= split.end) return nullptr;
  const int64_t entry = kv_entry_at(kv, split.table, kv_head, split.base + offset);
  return static_cast<const std::byte*>(cache) + entry * kv_entry_bytes(kv);
}

FT_HOT void widen_latents(const KvLayer& kv, const std::byte* entry, int count, uint16_t* out) {
  widen_entry(kv, entry, count, out);
}

// The first `count` elements of an entry, or null: in the cache, or widened into number `index` of
// the room for them.
const uint16_t* elements_of(const KvLayer& kv, const std::byte* entry, int count, int index,
                            Scratch& s) {
  if (entry == nullptr || kv.format == KvFormat::kPlain) {
    return reinterpret_cast<const uint16_t*>(entry);
  }
  uint16_t* room = s.widened + index * kMaxHeadDim;
  if (kv.value_dim > 0) {
    widen_latents(kv, entry, count, room);
  } else {
    lanes().widen_e4m3(reinterpret_cast<const uint8_t*>(entry), count, room);
  }
  return room;
}

// Blocks of 64 positions, each [head_dim / 32][its tiles].
void pack_split_keys(const KvLayer& kv, const TileSplit& split, int32_t kv_head, Scratch& s) {
  for (int first = split.begin / kKeysAtOnce * kKeysAtOnce; first < split.end;
       first += kKeysAtOnce) {
    const uint16_t* keys[kKeysAtOnce];
    for (int i = 0; i < kKeysAtOnce; ++i) {
      const std::byte* entry = entry_at(kv, kv.k, split, kv_head, first + i);
      keys[i] = elements_of(kv, entry, kv.head_dim, i, s);
    }
    uint16_t* block = s.keys + first / kBlockCols * kBlockCols * kv.head_dim;
    lanes().pack_keys(keys, kv.head_dim, block + first % kBlockCols / kBf16Lanes * kTileElements,
                      kBf16Tiles * kTileElements);
  }
}

// Blocks of 64 elements, each [positions / 32][its tiles]; the last one may have fewer tiles.
// Whether all are finite.
bool pack_split_values(const KvLayer& kv, const TileSplit& split, int32_t kv_head, Scratch& s) {
  bool finite = true;
  const int dim = kv.value_size();
  const int end = (split.end + kBf16Step - 1) / kBf16Step * kBf16Step;
  for (int pos = split.begin / kBf16Step * kBf16Step; pos < end; pos += 2) {
    const auto at = [&](int offset) {
      const std::byte* entry = entry_at(kv, kv.v, split, kv_head, offset);
      return elements_of(kv, entry, dim, offset - pos, s);
    };
    const uint16_t* first = at(pos);
    const uint16_t* second = at(pos + 1);
    for (int d = 0; d < dim; d += kBlockCols) {
      const int cols = std::min(kBlockCols, dim - d);
      uint16_t* to = s.values + d * kAttentionSplit + pos / kBf16Step * kBf16Step * cols +
                     pos % kBf16Step * kBf16Lanes;
      finite &= lanes().pack_value_pair(first != nullptr ? first + d : nullptr,
                                        second != nullptr ? second + d : nullptr, cols, to,
                                        kTileElements);
    }
  }
  return finite;
}

void score_tile_split(const KvLayer& kv, const TileSplit& split, int queries, Scratch& s) {
  for (int first = split.begin / kBlockCols * kBlockCols; first < split.end; first += kBlockCols) {
    bf16_kernels().front().multiply(
        {s.keys + first * kv.head_dim, kBlockCols, kv.head_dim / kBf16Step},
        {s.queries, kv.head_dim, s.scores + first, kAttentionSplit, queries});
  }
}

void weigh_split(const KvLayer& kv, const TileSplit& split, int queries, Scratch& s) {
  const int first = split.begin / kBf16Step, end = (split.end + kBf16Step - 1) / kBf16Step;
  const int dim = kv.value_size();
  for (int d = 0; d < dim; d += kBlockCols) {
    const int cols = std::min(kBlockCols, dim - d);
    bf16_kernels().front().multiply(
        {s.values + d * kAttentionSplit + first * kBf16Step * cols, cols, end - first},
        {s.weights + first * kBf16Step, kAttentionSplit, s.part + d, dim, queries});
  }
}

FT_HOT void scale_scores(float* scores, float scale, const ScoreEnd& end, int count) {
  for (int i = 0; i < count; ++i) scores[i] *= scale;
  end_scores(end, scores, count);
}

FT_HOT void merge_part(float* acc, const float* part, float keep, float take, int dim) {
  for (int d = 0; d < dim; ++d) acc[d] = acc[d] * keep + part[d] * take;
}

FT_HOT void write_out(const float* acc, float divisor, float scale, uint16_t* out, int dim) {
  for (int d = 0; d < dim; ++d) store_one(out + d, acc[d] / divisor * scale);
}

// What query `q` sees of the split, if anything.
SeenPositions seen_of_split(const AttentionArgs& a, const AttentionTile& tile,
                            const TileSplit& split, int q) {
  const SeenPositions seen = seen_by(a, tile.first_row + q / tile.heads);
  return {std::max(seen.begin - split.base, 0), std::min(seen.end - split.base, kAttentionSplit)};
}

void soften_split(const AttentionArgs& a, const AttentionTile& tile, const TileSplit& split,
                  SoftWeights* soft, Scratch& s) {
  const int from = split.begin / kBf16Step * kBf16Step;
  const int to = (split.end + kBf16Step - 1) / kBf16Step * kBf16Step;
  const float scale = a.scale * key_scale(a.kv, head_of_scales(a, tile.first_row, tile.kv_head));
  for (int q = 0; q < tile.rows * tile.heads; ++q) {
    const SeenPositions seen = seen_of_split(a, tile, split, q);
    float* scores = s.scores + q * kAttentionSplit;
    uint16_t* weights = s.weights + q * kAttentionSplit;
    if (seen.begin < seen.end) {
      const int position = a.positions[tile.first_row + q / tile.heads];
      const ScoreEnd end =
          score_end(a, tile.first_head + q % tile.heads, position, split.base + from);
      scale_scores(scores + from, scale, end, to - from);
      soft[q] = lanes().soften(scores, seen.begin, seen.end, from, to, weights);
    } else {
      soft[q].sum = 0;
      std::fill(weights + from, weights + to, uint16_t{0});
    }
  }
}

void merge_tile_split(const SoftWeights* soft, int queries, int dim, Scratch& s) {
  for (int q = 0; q < queries; ++q) {
    if (soft[q].sum == 0) continue;
    const float max = std::max(s.max[q], soft[q].max);
    const float keep = sample_math::exp_nonpositive(s.max[q] - max);
    const float take = sample_math::exp_nonpositive(soft[q].max - max);
    merge_part(s.acc + q * dim, s.part + q * dim, keep, take, dim);
    s.sum[q] = s.sum[q] * keep + soft[q].sum * take;
    s.max[q] = max;
  }
}

void begin_tile(const AttentionArgs& a, const AttentionTile& tile, Scratch& s) {
  const int dim = a.kv.head_dim;
  const auto* q = static_cast<const uint16_t*>(a.q);
  for (int r = 0; r < tile.rows; ++r) {
    const int64_t from = ((tile.first_row + r) * a.num_heads + tile.first_head) * dim;
    std::copy_n(q + from, tile.heads * dim, s.queries + r * tile.heads * dim);
  }
  const int queries = tile.rows * tile.heads;
  std::fill_n(s.acc, queries * a.kv.value_size(), 0.0f);
  std::fill_n(s.max, queries, -std::numeric_limits<float>::infinity());
  std::fill_n(s.sum, queries, 0.0f);
}

// False: a value is not finite and would reach rows that do not see it.
bool sum_tile(const AttentionArgs& a, const AttentionTile& tile, Scratch& s) {
  const SeenPositions all = seen_by(a, tile);
  const int32_t* table = a.block_tables + int64_t{a.row_slot[tile.first_row]} * a.max_blocks;
  const int queries = tile.rows * tile.heads;
  SoftWeights soft[kMaxTileQueries];
  for (int base = all.begin / kAttentionSplit * kAttentionSplit; base < all.end;
       base += kAttentionSplit) {
    const TileSplit split{table, base, std::max(all.begin - base, 0),
                          std::min(all.end - base, kAttentionSplit)};
    pack_split_keys(a.kv, split, tile.kv_head, s);
    if (!pack_split_values(a.kv, split, tile.kv_head, s) && tile.rows > 1) return false;
    score_tile_split(a.kv, split, queries, s);
    soften_split(a, tile, split, soft, s);
    weigh_split(a.kv, split, queries, s);
    merge_tile_split(soft, queries, a.kv.value_size(), s);
  }
  return true;
}

}  // namespace

bool has_attention_tiles(const KvLayer& kv) {
  const bool has_lanes = kv.format != KvFormat::kInt8 || kv.value_dim > 0;
  return has_lanes && kv.dtype == DType::kBF16 && kv.head_dim % kBf16Step == 0 &&
         kv.value_size() % kBf16Step == 0 && !attention_lanes().empty();
}

void attend_tile(const AttentionArgs& a, const AttentionTile& tile) {
  Scratch& s = thread_scratch<Scratch>();
  begin_tile(a, tile, s);
  if (!sum_tile(a, tile, s)) {
    for (int r = 0; r < tile.rows; ++r) {
      attend_tile(a, {tile.first_row + r, 1, tile.kv_head, tile.first_head, tile.heads});
    }
    return;
  }
  const int dim = a.kv.value_size();
  const float scale = value_scale(a.kv, head_of_scales(a, tile.first_row, tile.kv_head));
  for (int q = 0; q < tile.rows * tile.heads; ++q) {
    const int64_t row = tile.first_row + q / tile.heads;
    const int head = tile.first_head + q % tile.heads;
    if (a.states != nullptr) {
      store_state(a, row, head, {s.acc + q * dim, s.max[q], s.sum[q]}, scale);
      continue;
    }
    write_out(s.acc + q * dim, attention_divisor(a, head, s.max[q], s.sum[q]), scale,
              static_cast<uint16_t*>(a.out) + (row * a.num_heads + head) * dim, dim);
  }
}

}  // namespace foretoken::cpu
#endif
