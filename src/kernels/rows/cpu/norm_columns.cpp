#include "kernels/rows/norm_columns.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT float mean_of(const float* x, int size) {
  float total = 0;
  for (int i = 0; i < size; ++i) total += x[i];
  return total / static_cast<float>(size);
}

FT_HOT void norm_group(float* x, const float* weight, const NormColumnsArgs& a) {
  const int size = a.size;
  if (a.centred != 0) {
    const float mean = mean_of(x, size);
    for (int i = 0; i < size; ++i) x[i] -= mean;
  }
  const float square = sum_of_squares(x, size) / static_cast<float>(size);
  const float factor = 1.0f / std::sqrt(square + a.eps);
  for (int i = 0; i < size; ++i) x[i] *= factor;
  if (weight == nullptr) return;
  for (int i = 0; i < size; ++i) x[i] *= weight[i];
}

}  // namespace

void norm_columns(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const NormColumnsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, int64_t{rows} * a.groups, 2 * int64_t{a.size}, [&](int64_t index) {
    const int64_t row = index / a.groups, group = index % a.groups;
    const float* weight = a.weight == nullptr ? nullptr : a.weight + group * a.size;
    norm_group(a.x + row * a.stride + a.column + group * a.size, weight, a);
  });
}

}  // namespace foretoken::cpu
