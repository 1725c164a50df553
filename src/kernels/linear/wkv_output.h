#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What heads of WkvArgs have left becomes what the last product reads, for the live token rows: for
// each head
//   out = (layer_norm(left) * weights + biases + (sum of q * k * bonus) v) * gates,
// with the packed row's queries, keys and values.
struct WkvOutputArgs {
  static constexpr Op kOp = Op::kWkvOutput;
  const StepCounts* counts;
  const float* left;     // [max_rows, value_heads * value_dim]
  const float* packed;   // [max_rows, shape.row_size()]
  const float* gates;    // [max_rows, value_heads * value_dim]
  const float* bonus;    // [value_heads * key_dim]
  const float* weights;  // [value_heads * value_dim], and so is the next
  const float* biases;
  void* out;  // [max_rows, value_heads * value_dim] of dtype
  LinearShape shape;
  int32_t max_rows;
  float eps;
  DType dtype;  // kF32 or kBF16
};

void wkv_output(Queue& queue, const WkvOutputArgs& args);

}  // namespace foretoken
