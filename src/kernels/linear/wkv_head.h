#pragma once
#include "kernels/activation_math.h"
#include "kernels/linear/wkv_inputs.h"

// What one element of a head becomes, on both devices (wkv_inputs.h).

namespace foretoken {

inline constexpr float kWkvDecayRate = -0.6065306597126334f;  // -exp(-1/2)
inline constexpr float kWkvLeastLength = 1e-12f;

FT_HD inline float wkv_decay(float x) {
  return sample_math::exp_nonpositive(
      activation_math::mul(kWkvDecayRate, activation_math::sigmoid(x)));
}

// `at`: of the element in rows of all heads, `column` in one; `inverse`: of the length of the
// head's scaled keys.
FT_HD inline void write_wkv_input(const WkvInputsArgs& a, int64_t at, int32_t column, float inverse,
                                  float* out) {
  const LinearShape& shape = a.shape;
  const float k = a.k[at], rate = activation_math::sigmoid(a.rates[at]);
  const float unit = k * a.key_scale[column] * inverse;
  float v = a.v[at];
  if (a.shares == nullptr) {
    a.first_values[at] = v;
  } else {
    v += (a.first_values[at] - v) * activation_math::sigmoid(a.shares[at]);
  }
  out[column] = a.r[at];
  out[shape.k_offset() + column] = k * (1.0f + (rate - 1.0f) * a.rate_scale[column]);
  out[shape.v_offset() + column] = v;
  out[shape.decay_offset() + column] = wkv_decay(a.decays[at]);
  out[shape.removed_offset() + column] = -unit;
  out[shape.returned_offset() + column] = unit * rate;
}

}  // namespace foretoken
