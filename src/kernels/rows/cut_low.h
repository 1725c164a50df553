#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Leaves of the first `size` elements of each live token row what lies above a number of standard
// deviations beyond their mean, in place (Gemma 3n):
//   x = max(x - (m + deviations * s), 0),  m = mean(x), s = sqrt(mean((x - m)^2))
// Where ranks have parts of the row, each of `size` elements, m and s are those of all parts, by
// the moments of each (MeasurePartsArgs). The order of the sums does not depend on the number of
// rows.
struct CutLowArgs {
  static constexpr Op kOp = Op::kCutLow;
  const StepCounts* counts;
  float* x;  // [max_rows, stride]
  int32_t max_rows;
  int32_t stride;
  int32_t size;
  float deviations;
  const float* moments = nullptr;  // [max_rows, num_entries], those of part p at 2 p; or null
  int32_t num_parts = 1;
  int32_t num_entries = 0;
};

// Mean and sum of squared distances from it of parts of `size` elements each, given theirs.
struct RowMoments {
  float mean;
  float squares;
};
FT_HD inline RowMoments joined_moments(const float* moments, int32_t num_parts, float size) {
  RowMoments all{0, 0};
  for (int32_t p = 0; p < num_parts; ++p) all.mean += moments[2 * p];
  all.mean /= static_cast<float>(num_parts);
  for (int32_t p = 0; p < num_parts; ++p) {
    const float apart = moments[2 * p] - all.mean;
    all.squares += moments[2 * p + 1] + size * (apart * apart);
  }
  return all;
}

void cut_low(Queue& queue, const CutLowArgs& args);

}  // namespace foretoken
