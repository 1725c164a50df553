#pragma once
#include "kernels/activation_math.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"

namespace foretoken::cpu {

// to = silu(from), `count` numbers; in place where both are one.
FT_INLINE void pass_silu(const float* from, float* to, int count) {
  int i = 0;
  for (; i + kOctet <= count; i += kOctet) {
    Octet value, share;
    load(value, from + i);
    sigmoid(share, value);
    store(to + i, value * share);
  }
  for (; i < count; ++i) to[i] = from[i] * activation_math::sigmoid(from[i]);
}

}  // namespace foretoken::cpu
