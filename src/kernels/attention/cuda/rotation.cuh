#pragma once
#include "kernels/attention/rope_kv.h"
#include "kernels/cuda/common.cuh"

// How heads turn by position, as kernels/attention/cpu/rotation.h does on the CPU.
namespace foretoken::cuda {

// Where a row stands, for the angles and for its queries.
__device__ inline float turning_position(const int32_t* positions, int row, int shift) {
  return static_cast<float>(max(positions[row] + shift, 0));
}

// What queries of a position are multiplied by.
__device__ inline float query_scale_at(const QueryScale& scale, float position) {
  if (scale.beta == 0) return 1.0f;
  return 1.0f + scale.beta * log1pf(floorf((position + scale.offset) / scale.period));
}

// (cos, sin) by which a pair of frequency `inv_freq` turns.
__device__ inline float2 turn_at(float inv_freq, float position, float scaling) {
  float sine, cosine;
  sincosf(__fmul_rn(position, inv_freq), &sine, &cosine);
  return make_float2(cosine * scaling, sine * scaling);
}

// The same for pair i of `inv_freq`; null: nothing turns.
__device__ inline float2 turn_at(const float* inv_freq, int i, float position, float scaling) {
  return inv_freq == nullptr ? make_float2(1, 0) : turn_at(inv_freq[i], position, scaling);
}

__device__ inline void turn(float& low, float& high, float2 by) {
  const float a = low, b = high;
  low = a * by.x - b * by.y;
  high = b * by.x + a * by.y;
}

}  // namespace foretoken::cuda
