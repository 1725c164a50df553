#include "kernels/rows/cut_low.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/row_measures.h"

namespace foretoken::cpu {
namespace {

FT_HOT float own_mean(const float* x, int size) { return mean_of_row(x, size); }

FT_HOT void centre(float* x, float mean, int size) {
  for (int i = 0; i < size; ++i) x[i] -= mean;
}

FT_HOT float own_squares(const float* x, int size) { return sum_of_squares(x, size); }

FT_HOT void keep_above(float* x, float least, int size) {
  for (int i = 0; i < size; ++i) {
    const float above = x[i] - least;
    x[i] = above > 0 ? above : 0.0f;
  }
}

}  // namespace

void cut_low(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const CutLowArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    float* x = a.x + row * a.stride;
    const float size = static_cast<float>(a.size);
    if (a.moments == nullptr) {
      centre(x, own_mean(x, a.size), a.size);
      keep_above(x, a.deviations * std::sqrt(own_squares(x, a.size) / size), a.size);
      return;
    }
    const RowMoments all = joined_moments(a.moments + row * a.num_entries, a.num_parts, size);
    const float whole = size * static_cast<float>(a.num_parts);
    centre(x, all.mean, a.size);
    keep_above(x, a.deviations * std::sqrt(all.squares / whole), a.size);
  });
}

}  // namespace foretoken::cpu
