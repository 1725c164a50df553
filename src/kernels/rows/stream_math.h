#pragma once
#include "base/host_device.h"
#include "kernels/activation_math.h"
#include "kernels/rows/mix_streams.h"
#include "kernels/sample_math.h"

namespace foretoken {

// The factors of a row of the op mix_streams: S * S of them, or S to correct.
FT_HD inline int num_stream_factors(const MixStreamsArgs& a) {
  return a.activated != nullptr ? a.num_streams : a.num_streams * a.num_streams;
}

// Factor `index` of the row that `routed` [S] is of.
FT_HD inline float stream_factor(const MixStreamsArgs& a, const float* routed, int index) {
  float sum = a.activated != nullptr ? 1.0f : 0.0f;
  for (int p = 0; p < a.num_streams; ++p) {
    const float turned =
        activation_math::soft_capped(sample_math::mul(routed[p], a.scale), 1.0f, 1.0f);
    const float weight = a.weights[index * a.num_streams + p];
    sum = sample_math::add(sum, sample_math::mul(weight, turned));
  }
  return sum;
}

}  // namespace foretoken
