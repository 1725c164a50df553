#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Leaves of the first `size` elements of each live token row what lies above a number of standard
// deviations beyond their mean, in place (Gemma 3n):
//   x = max(x - (m + deviations * s), 0),  m = mean(x), s = sqrt(mean((x - m)^2))
// The order of the sums does not depend on the number of rows.
struct CutLowArgs {
  static constexpr Op kOp = Op::kCutLow;
  const StepCounts* counts;
  float* x;  // [max_rows, stride]
  int32_t max_rows;
  int32_t stride;
  int32_t size;
  float deviations;
};

void cut_low(Queue& queue, const CutLowArgs& args);

}  // namespace foretoken
