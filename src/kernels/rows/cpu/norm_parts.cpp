#include "kernels/rows/norm_parts.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <class Out>
FT_INLINE void scale_part(const float* x, float factor, const float* weight, int count, Out* out) {
  if (weight == nullptr) {
    for (int i = 0; i < count; ++i) store_one(out + i, x[i] * factor);
    return;
  }
  for (int i = 0; i < count; ++i) store_one(out + i, x[i] * factor * weight[i]);
}

FT_HOT void scale_to_floats(const float* x, float factor, const float* weight, int count,
                            float* out) {
  scale_part(x, factor, weight, count, out);
}
FT_HOT void scale_to_halves(const float* x, float factor, const float* weight, int count,
                            uint16_t* out) {
  scale_part(x, factor, weight, count, out);
}

void norm_row_part(const NormPartsArgs& a, int32_t index, int64_t row) {
  const RowPart& part = a.parts[index];
  const float* squares = a.entries + row * a.num_entries + part.entry;
  for (int32_t g = part.first_group(); g <= part.last_group(); ++g) {
    const float factor = 1.0f / std::sqrt(squares[g] / static_cast<float>(part.group) + a.eps);
    const int32_t begin = part.begin_of(g), count = part.end_of(g) - begin;
    const float* weight = a.weights[index] == nullptr ? nullptr : a.weights[index] + begin;
    const int64_t at = row * a.stride + part.column + begin;
    if (a.out_dtype == DType::kF32) {
      scale_to_floats(a.x + at, factor, weight, count, static_cast<float*>(a.out) + at);
    } else {
      scale_to_halves(a.x + at, factor, weight, count, static_cast<uint16_t*>(a.out) + at);
    }
  }
}

}  // namespace

void norm_parts(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const NormPartsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 2 * int64_t{a.stride}, [&](int64_t row) {
    for (int32_t i = 0; i < a.num_parts; ++i) norm_row_part(a, i, row);
  });
}

}  // namespace foretoken::cpu
