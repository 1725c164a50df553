#include "kernels/rows/measure_parts.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/row_measures.h"

namespace foretoken::cpu {
namespace {

FT_HOT float squares_of_part(const float* x, int count) { return sum_of_squares(x, count); }

FT_HOT float squares_apart(const float* x, float mean, int count) {
  float total = 0;
  for (int i = 0; i < count; ++i) total += (x[i] - mean) * (x[i] - mean);
  return total;
}

FT_HOT float highest_of_floats(const float* x, int count) { return largest_magnitude(x, count); }
FT_HOT float highest_of_halves(const uint16_t* x, int count) { return largest_magnitude(x, count); }

void measure_part(const MeasurePartsArgs& a, const RowPart& part, int64_t row, float* entries) {
  const int64_t at = row * a.stride + part.column;
  const auto* x = static_cast<const float*>(a.x) + at;
  float* own = entries + part.entry;
  switch (a.measure) {
    case PartMeasure::kSquares:
      for (int32_t g = part.first_group(); g <= part.last_group(); ++g) {
        const int32_t begin = part.begin_of(g);
        own[g] = squares_of_part(x + begin, part.end_of(g) - begin);
      }
      return;
    case PartMeasure::kMoments:
      own[0] = mean_of_row(x, part.count);
      own[1] = squares_apart(x, own[0], part.count);
      return;
    case PartMeasure::kHighest:
      own[0] = a.dtype == DType::kF32
                   ? highest_of_floats(x, part.count)
                   : highest_of_halves(static_cast<const uint16_t*>(a.x) + at, part.count);
      return;
  }
}

}  // namespace

void measure_parts(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MeasurePartsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, a.stride, [&](int64_t row) {
    float* entries = a.entries + row * a.num_entries;
    std::fill_n(entries, a.num_entries, 0.0f);
    for (int32_t i = 0; i < a.num_parts; ++i) measure_part(a, a.parts[i], row, entries);
  });
}

}  // namespace foretoken::cpu
