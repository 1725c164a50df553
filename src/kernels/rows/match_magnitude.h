#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Gives live token rows the root mean square of others, in place (AltUp as in Gemma 3n):
//   x[r] = x[r] * sqrt(mean(like[r]^2)) / sqrt(max(mean(x[r]^2), least))
// The order of the sums does not depend on the number of rows.
struct MatchMagnitudeArgs {
  static constexpr Op kOp = Op::kMatchMagnitude;
  const StepCounts* counts;
  float* x;           // [max_rows, size]
  const float* like;  // [max_rows, size]
  int32_t max_rows;
  int32_t size;
  float least;  // above 0
};

void match_magnitude(Queue& queue, const MatchMagnitudeArgs& args);

}  // namespace foretoken
