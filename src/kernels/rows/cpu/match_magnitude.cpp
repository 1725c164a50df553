#include "kernels/rows/match_magnitude.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT float mean_square(const float* x, int size) {
  return sum_of_squares(x, size) / static_cast<float>(size);
}

FT_HOT void multiply_row(float* x, float factor, int size) {
  for (int i = 0; i < size; ++i) x[i] *= factor;
}

}  // namespace

void match_magnitude(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MatchMagnitudeArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 3 * int64_t{a.size}, [&](int64_t row) {
    float* x = a.x + row * a.size;
    const float wanted = std::sqrt(mean_square(a.like + row * a.size, a.size));
    multiply_row(x, wanted / std::sqrt(std::max(mean_square(x, a.size), a.least)), a.size);
  });
}

}  // namespace foretoken::cpu
