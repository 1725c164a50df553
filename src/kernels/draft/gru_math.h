#pragma once
#include "kernels/activation_math.h"
#include "kernels/draft/gru_step.h"

namespace foretoken {

// What element i of a row's state becomes, of x and h as the op has them and the state before.
FT_HD_INLINE float gru_state(const float* x, const float* h, int32_t size, int32_t i,
                             float before) {
  namespace m = activation_math;
  const bool carries = h != nullptr;
  const float r = m::sigmoid(m::add(x[i], carries ? h[i] : 0.0f));
  const float z = m::sigmoid(m::add(x[size + i], carries ? h[size + i] : 0.0f));
  const float reset = carries ? m::mul(r, h[2 * size + i]) : 0.0f;
  const float n = m::tanh_of(m::add(x[2 * size + i], reset));
  return m::add(m::mul(m::sub(1.0f, z), n), carries ? m::mul(z, before) : 0.0f);
}

}  // namespace foretoken
