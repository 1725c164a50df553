#pragma once
#include "device/queue.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Makes the packed rows of WkvArgs from what products left, for the live token rows. For each head,
// with a = sigmoid(rates) and kk = k * key_scale, divided by its length (at least 1e-12):
//   queries  r                                   values    v + (first_values - v) sigmoid(shares)
//   keys     k (1 + (a - 1) rate_scale)          decays    exp(-exp(-1/2) sigmoid(decays))
//   removed  -kk                                 returned  kk a
// Where there are no shares (the first layer) values are v, and become the first ones.
// All are [max_rows, value_heads * key_dim], heads side by side, as key_dim is value_dim.
struct WkvInputsArgs {
  static constexpr Op kOp = Op::kWkvInputs;
  const StepCounts* counts;
  const float* r;
  const float* k;
  const float* v;
  const float* decays;
  const float* rates;
  const float* shares;  // or null
  float* first_values;
  const float* key_scale;   // [value_heads * key_dim]
  const float* rate_scale;  // the same
  float* out;               // [max_rows, shape.row_size()]
  LinearShape shape;
  int32_t max_rows;
};

void wkv_inputs(Queue& queue, const WkvInputsArgs& args);

}  // namespace foretoken
