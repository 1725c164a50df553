#include "kernels/lora/lora.h"

#include <algorithm>

#include "kernels/cpu/lane_pair.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/packed_weight.h"
#include "kernels/gemm/gated_act.h"
#include "kernels/lora/cpu/row_dots.h"

namespace foretoken::cpu {
namespace {

constexpr int kExpandCols = 512;
static_assert(kLoraRankStep % kDotsAtOnce == 0);

// y[c] += sum over j of b[j, c] t[j], each one chain over j. V: Lanes or LanePair.
template <class V, class T>
FT_INLINE void add_columns(const T* b, int64_t stride, const float* t, int rank, float* y,
                           int cols) {
  int c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    V sum = {}, into;
    for (int j = 0; j < rank; ++j) {
      V column;
      load(column, b + j * stride + c);
      add_product(sum, column, t[j]);
    }
    load(into, y + c);
    add_product(into, sum, 1.0f);
    store(y + c, into);
  }
  for (; c < cols; ++c) {
    float sum = 0;
    for (int j = 0; j < rank; ++j) sum += load_one(b + j * stride + c) * t[j];
    y[c] += sum;
  }
}

FT_HOT void add_columns_f32(const float* b, int64_t stride, const float* t, int rank, float* y,
                            int cols) {
  add_columns<Lanes>(b, stride, t, rank, y, cols);
}
FT_HOT void add_columns_bf16(const uint16_t* b, int64_t stride, const float* t, int rank, float* y,
                             int cols) {
  add_columns<Lanes>(b, stride, t, rank, y, cols);
}
template <class T>
FT_AVX2 void add_columns_pairs(const T* b, int64_t stride, const float* t, int rank, float* y,
                               int cols) {
  add_columns<LanePair>(b, stride, t, rank, y, cols);
}

// y = f (y - bias + b t) + bias, where y - bias + b t is y already but for the bias.
void apply_factors(const float* factors, const float* bias, float* y, int cols) {
  for (int c = 0; c < cols; ++c) {
    y[c] = factors[c] * y[c] + (bias != nullptr ? (1 - factors[c]) * bias[c] : 0.0f);
  }
}

// Columns [first, first + count) of a product, and where they lie in a row of y.
struct LoraSegment {
  int first;
  int count;
  int64_t place;
};

// Segment `index` of a product in a weight of gates and ups: its side of a slice.
LoraSegment gate_up_segment(const PackedWeight& weight, int part, int index) {
  const int side = weight.cols(index) / 2;
  const int first = weight.first_col(index);
  return {first, side, 2 * int64_t{first} + int64_t{part} * side};
}

LoraSegment plain_segment(const LoraExpandArgs& a, int part, int index) {
  int64_t before = 0;
  for (int i = 0; i < part; ++i) before += a.part_cols[i];
  const int first = index * kExpandCols;
  return {first, std::min(kExpandCols, a.part_cols[part] - first), before + first};
}

int num_segments(const LoraExpandArgs& a, int part) {
  if (a.weight != nullptr) return static_cast<const PackedWeight*>(a.weight)->num_slices();
  return (a.part_cols[part] + kExpandCols - 1) / kExpandCols;
}

void expand_segment(const LoraExpandArgs& a, const LoraTile& tile, int part,
                    const LoraSegment& segment) {
  const LoraMatrix& matrix = a.matrices[int64_t{tile.adapter} * a.adapter_stride + part];
  if (matrix.rank == 0) return;
  const int64_t stride = lora_stride(a.part_cols[part]);
  static const bool pairs = has_lane_pairs();
  const bool has_bias = a.bias != nullptr && a.weight == nullptr;
  for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
    const float* t = a.t + (int64_t{i} * a.num_parts + part) * lora_splits(a.k) * a.max_rank;
    float* y = a.y + int64_t{a.rows.rows[i]} * a.y_stride + segment.place;
    if (a.dtype == DType::kF32) {
      const auto add = pairs ? add_columns_pairs<float> : add_columns_f32;
      add(static_cast<const float*>(matrix.b) + segment.first, stride, t, matrix.rank, y,
          segment.count);
    } else {
      const auto add = pairs ? add_columns_pairs<uint16_t> : add_columns_bf16;
      add(static_cast<const uint16_t*>(matrix.b) + segment.first, stride, t, matrix.rank, y,
          segment.count);
    }
    if (matrix.factors == nullptr) continue;
    apply_factors(matrix.factors + segment.first, has_bias ? a.bias + segment.place : nullptr, y,
                  segment.count);
  }
}

template <class T>
void look_up_row(const LoraMatrix& matrix, int64_t id, int first_rank, float* t) {
  const T* from = static_cast<const T*>(matrix.a) + id * matrix.rank + first_rank;
  for (int j = 0; j < kDotsAtOnce; ++j) t[j] = matrix.scale * load_one(from + j);
}

// As shrink_rows, where x is a one at the row's id.
void look_up_rows(const LoraShrinkArgs& a, const LoraTile& tile, int part, int first_rank) {
  const LoraMatrix& matrix = a.matrices[int64_t{tile.adapter} * a.adapter_stride + part];
  if (first_rank >= matrix.rank) return;
  for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
    const int32_t own = a.token_ids[a.rows.rows[i]];
    const int32_t id = own >= 0 && own < a.k ? own : 0;
    float* t = a.t + (int64_t{i} * a.num_parts + part) * a.max_rank + first_rank;
    a.dtype == DType::kF32 ? look_up_row<float>(matrix, id, first_rank, t)
                           : look_up_row<uint16_t>(matrix, id, first_rank, t);
  }
}

void shrink_rows(const LoraShrinkArgs& a, const LoraTile& tile, int part, int first_rank) {
  const LoraMatrix& matrix = a.matrices[int64_t{tile.adapter} * a.adapter_stride + part];
  if (first_rank >= matrix.rank) return;
  const RowDots dots{matrix.a, a.x, a.k, a.dtype};
  for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
    float sums[kDotsAtOnce];
    multiply_four(dots, first_rank, a.rows.rows[i], sums);
    const int64_t place = (int64_t{i} * a.num_parts + part) * lora_splits(a.k);
    float* t = a.t + place * a.max_rank + first_rank;
    for (int j = 0; j < kDotsAtOnce; ++j) t[j] = matrix.scale * sums[j];
  }
}

}  // namespace

// Rows without an adapter are those of one more adapter here.
void group_lora(const void* args, CpuPool&) {
  const auto& a = *static_cast<const GroupLoraArgs*>(args);
  const bool gathered = a.row_index != nullptr;
  const int rows =
      live_rows(*a.counts, gathered ? RowKind::kLogits : RowKind::kToken, a.row_offset, a.max_rows);
  const int none = a.max_adapters;
  int counts[kMaxAdapters + 1] = {};
  for (int row = 0; row < rows; ++row) {
    const int32_t token_row = gathered ? a.row_index[a.row_offset + row] : row;
    const int32_t adapter = lora_of_row(a.params[a.row_slot[token_row]], a.positions, token_row);
    a.rows.row_adapter[row] = adapter >= 0 && adapter < none ? adapter : none;
    ++counts[a.rows.row_adapter[row]];
  }
  int begins[kMaxAdapters + 1];
  int num_tiles = 0, begin = 0;
  for (int adapter = 0; adapter <= none; ++adapter) {
    if (adapter == none) a.rows.num_tiles[0] = num_tiles;
    begins[adapter] = begin;
    for (int done = 0; done < counts[adapter]; done += kLoraTileRows) {
      a.rows.tiles[num_tiles++] = {adapter == none ? -1 : adapter, begin + done,
                                   std::min(kLoraTileRows, counts[adapter] - done)};
    }
    begin += counts[adapter];
  }
  for (int row = 0; row < rows; ++row) a.rows.rows[begins[a.rows.row_adapter[row]]++] = row;
  a.rows.num_tiles[1] = num_tiles;
}

void lora_shrink(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LoraShrinkArgs*>(args);
  const int groups = a.max_rank / kDotsAtOnce;
  const int64_t each = int64_t{a.num_parts} * groups;
  pool.parallel_for(*a.rows.num_tiles * each, [&](int64_t index, int) {
    const LoraTile& tile = a.rows.tiles[index / each];
    const auto at = static_cast<int>(index % each);
    const auto shrink = a.token_ids != nullptr ? look_up_rows : shrink_rows;
    shrink(a, tile, at / groups, at % groups * kDotsAtOnce);
  });
}

void lora_expand(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LoraExpandArgs*>(args);
  int ends[kMaxLoraParts];
  int each = 0;
  for (int part = 0; part < a.num_parts; ++part) ends[part] = each += num_segments(a, part);
  pool.parallel_for(int64_t{*a.rows.num_tiles} * each, [&](int64_t index, int) {
    const LoraTile& tile = a.rows.tiles[index / each];
    const auto at = static_cast<int>(index % each);
    int part = 0;
    while (at >= ends[part]) ++part;
    const int segment = at - (part == 0 ? 0 : ends[part - 1]);
    expand_segment(a, tile, part,
                   a.weight != nullptr
                       ? gate_up_segment(*static_cast<const PackedWeight*>(a.weight), part, segment)
                       : plain_segment(a, part, segment));
  });
  if (a.gated == nullptr) return;
  const GatedActArgs act{.counts = a.counts,
                         .gate_up = a.y,
                         .out = a.gated,
                         .max_rows = a.max_rows,
                         .size = a.part_cols[0],
                         .activation = a.activation,
                         .out_dtype = a.dtype,
                         .weight = a.weight,
                         .bias = a.bias};
  gated_act(&act, pool);
}

}  // namespace foretoken::cpu
