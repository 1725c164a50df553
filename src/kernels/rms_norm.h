#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Residual add and root mean square norm (Zhang and Sennrich 2019):
//   residual[r] += delta[r]                                   (when delta is given)
//   out[i] = residual[r] / sqrt(mean(residual[r]^2) + eps) * weight
// with r = i, over the live token rows; or, when row_index is given, r = row_index[row_offset + i]
// over the live logits rows from row_offset on (delta must then be null).
// The order of the sum does not depend on the number of rows.
struct RmsNormArgs {
  static constexpr Op kOp = Op::kRmsNorm;
  const StepCounts* counts;
  float* residual;           // [token rows, hidden]
  const float* delta;        // [token rows, hidden] or null
  const float* weight;       // [hidden]
  void* out;                 // [max_rows, hidden] of out_dtype
  const int32_t* row_index;  // [logits rows] or null
  int32_t row_offset;
  int32_t max_rows;
  int32_t hidden;
  float eps;
  DType out_dtype;  // kF32 or kBF16
};

void rms_norm(Queue& queue, const RmsNormArgs& args);

}  // namespace foretoken
