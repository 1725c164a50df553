#pragma once
#include "device/queue.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// How the decays and scales of a row are made; with r = rates, b = decay_bias.
enum class LinearGates : int32_t {
  // decay = exp(-r * softplus(decay + b)), scale = scale_factor * sigmoid(scale), by head, or for
  // channel_decay by channel with the rate of its head (gated delta rule, Kimi).
  kDelta,
  // decay = exp(lower_bound * sigmoid(r * (decay + b))), scale and channels as of kDelta (Ling 3).
  kBounded,
  // step = clamp(softplus(decay + b), min_step, max_step); decay = exp(-r * step), scale = step
  // (Mamba 2).
  kStep,
  // decay = exp(-r), there is no scale (lightning attention).
  kFixed,
};

// Makes the packed rows of LinearShape from what products and convolutions left, for the live token
// rows. With `unit` each head of q and k is divided by sqrt(its sum of squares + 1e-6) first; q is
// multiplied with q_scale behind that. With `silu` q, k and v pass SiLU first.
struct LinearInputsArgs {
  static constexpr Op kOp = Op::kLinearInputs;
  const StepCounts* counts;
  const float* q;  // [max_rows, stride], heads side by side, and so are k and v
  const float* k;
  const float* v;
  const float* decay;  // [max_rows, decay_stride]: decay_size of them; null with kFixed
  const float*
      scale;  // [max_rows, scale_stride]: value_heads of them; null but with kDelta and kBounded
  const float* rates;       // [value_heads], none below 0
  const float* decay_bias;  // [decay_size], or null: zero
  float* out;               // [max_rows, shape.row_size()]
  LinearShape shape;
  int32_t stride;
  int32_t decay_stride;
  int32_t scale_stride;
  int32_t max_rows;
  LinearGates gates;
  int32_t unit;
  int32_t silu;
  float q_scale;
  float min_step;
  float max_step;
  float scale_factor = 1;
  float lower_bound = 0;  // at most 0
};

void linear_inputs(Queue& queue, const LinearInputsArgs& args);

}  // namespace foretoken
