#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/attention/rope_kv.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// cos and sin of one position, shared by all heads of a row, and what its queries are multiplied
// by.
struct Rotation {
  float cos[kMaxHeadDim / 2];
  float sin[kMaxHeadDim / 2];
  float query_scale;
};

inline float query_scale_at(const QueryScale& scale, float position) {
  if (scale.beta == 0) return 1;
  return 1 + scale.beta * std::log1p(std::floor((position + scale.offset) / scale.period));
}

// How the heads of an op turn, as RopeKvArgs says.
struct Turning {
  const float* inv_freq;
  int pairs;
  float scaling;
  int shift;
  QueryScale query_scale;
};

inline void make_rotation(const Turning& turning, int position, Rotation* out) {
  const auto shifted = static_cast<float>(std::max(0, position + turning.shift));
  out->query_scale = query_scale_at(turning.query_scale, shifted);
  for (int i = 0; i < turning.pairs; ++i) {
    const float angle = shifted * turning.inv_freq[i];
    out->cos[i] = std::cos(angle) * turning.scaling;
    out->sin[i] = std::sin(angle) * turning.scaling;
  }
}

// x[i] and x[half + i] turn for i < half; what is behind them, up to `dim`, stays.
template <class Out>
FT_INLINE void rotate(const float* x, const Rotation& r, int half, int dim, Out* out) {
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[half + i];
    store_one(out + i, a * r.cos[i] - b * r.sin[i]);
    store_one(out + half + i, b * r.cos[i] + a * r.sin[i]);
  }
  for (int i = 2 * half; i < dim; ++i) store_one(out + i, x[i]);
}

}  // namespace foretoken::cpu
