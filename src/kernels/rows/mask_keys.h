#pragma once
#include <cmath>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// The terms that keys add to all scores with them (dynamic masks, Doge): of key head h in row r
//   b = exp(rates[h] * log(1 + exp(steps[r][h]))) / scale.
// Two elements of each head carry it into attention, whose scores are then scaled by `scale`: b as
// bfloat16 and what that leaves of it in keys, 1 and 1 in queries. For the live token rows, in
// place, before rope_kv.
struct MaskKeysArgs {
  static constexpr Op kOp = Op::kMaskKeys;
  const StepCounts* counts;
  float* qkv;          // [max_rows, (num_heads + 2 num_kv_heads) * head_dim], as of RopeKvArgs
  const float* steps;  // [max_rows, step_stride], of the rank's heads from the first on
  const float* rates;  // [num_kv_heads]
  int32_t max_rows;
  int32_t num_heads;
  int32_t num_kv_heads;
  int32_t head_dim;
  int32_t element;  // the first of the two
  float scale;
  int32_t step_stride;
};

// b of a step and its head's rate, for both devices.
FT_HD inline float mask_term(float step, float rate, float scale) {
  constexpr float kWideStep = 20;  // from which on log(1 + exp(x)) is x
  const float soft = step > kWideStep ? step : std::log1p(std::exp(step));
  return std::exp(rate * soft) / scale;
}

void mask_keys(Queue& queue, const MaskKeysArgs& args);

}  // namespace foretoken
