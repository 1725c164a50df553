#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Residual add and root mean square norm (Zhang and Sennrich 2019), or with `centred` the layer
// norm of Ba et al. 2016:
//   x = residual[r] + delta_scale * delta[r]                  (delta: when given)
//   out[i] = x / sqrt(mean(x^2) + eps) * weight               (weight null: out[i] = x)
//   out[i] = (x - m) / sqrt(mean((x - m)^2) + eps) * weight + bias, m = mean(x), where centred
// with r = i, over the live token rows, where x is stored to residual[r]; or, when row_index is
// given, r = row_index[row_offset + i] over the live logits rows from row_offset on, where the
// residual stays as it is. Rows of residual and delta up to max_rows are readable memory.
// out may be the residual where it is of floats and delta and row_index are null.
// The order of the sum does not depend on the number of rows.
struct RmsNormArgs {
  static constexpr Op kOp = Op::kRmsNorm;
  const StepCounts* counts;
  float* residual;           // [token rows, hidden]
  const float* delta;        // [token rows, hidden] or null
  const float* weight;       // [hidden] or null
  void* out;                 // [max_rows, hidden] of out_dtype
  const int32_t* row_index;  // [logits rows] or null
  int32_t row_offset;
  int32_t max_rows;
  int32_t hidden;
  float eps;
  DType out_dtype;              // kF32 or kBF16
  const float* bias = nullptr;  // [hidden] or null; only where centred
  int32_t centred = 0;
  float delta_scale = 1;
};

void rms_norm(Queue& queue, const RmsNormArgs& args);

}  // namespace foretoken
