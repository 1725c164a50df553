#include "kernels/rows/cut_low.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT float mean_of_row(const float* x, int size) {
  Lanes lanes = {};
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes some;
    load(some, x + i);
    lanes += some;
  }
  float total = sum_lanes(lanes);
  for (; i < size; ++i) total += x[i];
  return total / static_cast<float>(size);
}

FT_HOT void centre(float* x, float mean, int size) {
  for (int i = 0; i < size; ++i) x[i] -= mean;
}

FT_HOT float deviation_of(const float* x, int size) {
  return std::sqrt(sum_of_squares(x, size) / static_cast<float>(size));
}

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
    centre(x, mean_of_row(x, a.size), a.size);
    keep_above(x, a.deviations * deviation_of(x, a.size), a.size);
  });
}

}  // namespace foretoken::cpu
