#include "kernels/draft/pair_rows.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/rows/cpu/table_row.h"

namespace foretoken::cpu {
namespace {

// One half of an output row: n elements of `from` times `scale`, normed with `weight` if given.
template <class In>
struct Half {
  const In* from;
  const float* weight;
  float scale;
  float eps;
};

template <class In>
FT_INLINE float squares(const Half<In>& half, int n) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, half.from + i);
    lanes *= half.scale;
    sum += lanes * lanes;
  }
  float total = sum_lanes(sum);
  for (; i < n; ++i) {
    const float x = load_one(half.from + i) * half.scale;
    total += x * x;
  }
  return total;
}

template <class In, class Out>
FT_INLINE void write_half(const Half<In>& half, Out* to, int n) {
  const bool normed = half.weight != nullptr;
  const float factor =
      normed ? 1.0f / std::sqrt(squares(half, n) / static_cast<float>(n) + half.eps) : 1.0f;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, half.from + i);
    lanes *= half.scale;
    if (normed) {
      Lanes weight;
      load(weight, half.weight + i);
      lanes = lanes * factor * weight;
    }
    store(to + i, lanes);
  }
  for (; i < n; ++i) {
    const float x = load_one(half.from + i) * half.scale;
    store_one(to + i, normed ? x * factor * half.weight[i] : x);
  }
}

using HalfF32 = Half<float>;
using HalfBf16 = Half<uint16_t>;
FT_HOT void write_f32_f32(const HalfF32& half, float* to, int n) { write_half(half, to, n); }
FT_HOT void write_f32_bf16(const HalfF32& half, uint16_t* to, int n) { write_half(half, to, n); }
FT_HOT void write_bf16_f32(const HalfBf16& half, float* to, int n) { write_half(half, to, n); }
FT_HOT void write_bf16_bf16(const HalfBf16& half, uint16_t* to, int n) { write_half(half, to, n); }

struct Source {
  const void* rows;
  DType dtype;
  const float* norm;
  float scale;
};

void write_any(const PairRowsArgs& a, const Source& source, int64_t from_row, int64_t to_at) {
  const int64_t from = from_row * a.hidden;
  auto* to_f32 = static_cast<float*>(a.out) + to_at;
  auto* to_bf16 = static_cast<uint16_t*>(a.out) + to_at;
  if (source.dtype == DType::kF32) {
    const HalfF32 half{static_cast<const float*>(source.rows) + from, source.norm, source.scale,
                       a.eps};
    a.dtype == DType::kF32 ? write_f32_f32(half, to_f32, a.hidden)
                           : write_f32_bf16(half, to_bf16, a.hidden);
  } else {
    const HalfBf16 half{static_cast<const uint16_t*>(source.rows) + from, source.norm, source.scale,
                        a.eps};
    a.dtype == DType::kF32 ? write_bf16_f32(half, to_f32, a.hidden)
                           : write_bf16_bf16(half, to_bf16, a.hidden);
  }
}

// A row as floats.
struct RowFloats {
  std::vector<float> values;
};

float* row_floats(int32_t n) {
  std::vector<float>& values = thread_scratch<RowFloats>().values;
  if (values.size() < static_cast<size_t>(n)) {
    const ForeignAllocationScope once;
    values.resize(static_cast<size_t>(n));
  }
  return values.data();
}

// Halves are widened where they go to, which is floats, and so are quantised rows that do.
void write_embedding(const PairRowsArgs& a, int64_t id, int64_t to_at) {
  if (a.table.dtype != DType::kF16 && !a.table.quantized) {
    return write_any(a, {a.table.data, a.table.dtype, a.embed_norm, a.scale}, id, to_at);
  }
  if (a.dtype == DType::kBF16) {
    float* row = row_floats(a.hidden);
    read_table_row(a.table, id, a.hidden, 1, row);
    auto* to_bf16 = static_cast<uint16_t*>(a.out) + to_at;
    return write_f32_bf16({row, a.embed_norm, a.scale, a.eps}, to_bf16, a.hidden);
  }
  float* to = static_cast<float*>(a.out) + to_at;
  read_table_row(a.table, id, a.hidden, 1, to);
  write_f32_f32({to, a.embed_norm, a.scale, a.eps}, to, a.hidden);
}

}  // namespace

void pair_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const PairRowsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const Source states{a.states, a.states_dtype, a.states_norm, 1.0f};
  for_each_row(pool, rows, 4 * int64_t{a.hidden}, [&](int64_t row) {
    const int32_t id = a.token_ids[row];
    const int64_t first = row * 2 * a.hidden, second = first + a.hidden;
    write_embedding(a, id >= 0 && id < a.vocab ? id : 0, a.state_first ? second : first);
    write_any(a, states, a.from == nullptr ? row : a.from[row], a.state_first ? first : second);
  });
}

}  // namespace foretoken::cpu
