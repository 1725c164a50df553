#include "kernels/rows/round_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float8.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/row_measures.h"

namespace foretoken::cpu {
namespace {

// A group of up to kRoundedGroup elements; `given`: as RoundRowsArgs::scale.
template <class T>
FT_INLINE void round_group(const T* x, int count, float given, T* to) {
  float values[kRoundedGroup];
  uint32_t bits = 0;  // as integers, so that no NaN is passed over
  for (int i = 0; i < count; ++i) {
    values[i] = load_one(x + i);
    uint32_t own;
    std::memcpy(&own, values + i, sizeof own);
    own &= 0x7fffffffu;
    bits = own > bits ? own : bits;
  }
  float highest;
  std::memcpy(&highest, &bits, sizeof highest);
  const float scale = given > 0 ? given : fp8_group_scale(highest);
  for (int i = 0; i < count; ++i) {
    store_one(to + i, e4m3_value(e4m3_code(values[i] / scale)) * scale);
  }
}

template <class T>
FT_INLINE void round_row(const RoundRowsArgs& a, int64_t row) {
  const T* x = static_cast<const T*>(a.x) + row * a.columns;
  T* to = static_cast<T*>(a.rounded) + row * a.columns;
  for (int first = 0; first < a.columns; first += kRoundedGroup) {
    round_group(x + first, std::min(kRoundedGroup, a.columns - first), a.scale, to + first);
  }
}

template <class T>
FT_INLINE void round_row_to_int8(const RoundRowsArgs& a, int64_t row) {
  const T* x = static_cast<const T*>(a.x) + row * a.columns;
  T* to = static_cast<T*>(a.rounded) + row * a.columns;
  const float highest = a.highest == nullptr
                            ? largest_magnitude(x, a.columns)
                            : largest_magnitude(a.highest + row * a.num_entries, a.num_highest);
  const float scale = 127.0f / (highest < kLeastInt8Row ? kLeastInt8Row : highest);
  for (int i = 0; i < a.columns; ++i) {
    const float code = std::nearbyint(load_one(x + i) * scale);
    store_one(to + i, (code > 127.0f ? 127.0f : code) / scale);
  }
}

FT_HOT void round_row_to_int8_f32(const RoundRowsArgs& a, int64_t row) {
  round_row_to_int8<float>(a, row);
}
FT_HOT void round_row_to_int8_bf16(const RoundRowsArgs& a, int64_t row) {
  round_row_to_int8<uint16_t>(a, row);
}
FT_HOT void round_row_f32(const RoundRowsArgs& a, int64_t row) { round_row<float>(a, row); }
FT_HOT void round_row_bf16(const RoundRowsArgs& a, int64_t row) { round_row<uint16_t>(a, row); }

}  // namespace

void round_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const RoundRowsArgs*>(args);
  const int rows =
      live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows / a.per_row) * a.per_row;
  const bool is_float = a.dtype == DType::kF32;
  if (a.rounding == RowRounding::kInt8) {
    pool.parallel_for(rows, [&](int64_t row, int) {
      is_float ? round_row_to_int8_f32(a, row) : round_row_to_int8_bf16(a, row);
    });
    return;
  }
  pool.parallel_for(
      rows, [&](int64_t row, int) { is_float ? round_row_f32(a, row) : round_row_bf16(a, row); });
}

}  // namespace foretoken::cpu
