#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "base/philox.h"

// The arithmetic of one logit, shared by the CPU and the CUDA sample kernel. Every operation rounds
// once and none is contracted, so that both devices draw the same ids from the same logits.

#ifdef __CUDACC__
#define FT_HD_INLINE __host__ __device__ __forceinline__
#else
#define FT_HD_INLINE inline __attribute__((always_inline))
#endif

namespace foretoken::sample_math {

#ifdef __CUDA_ARCH__
FT_HD_INLINE float mul(float a, float b) { return __fmul_rn(a, b); }
FT_HD_INLINE float add(float a, float b) { return __fadd_rn(a, b); }
FT_HD_INLINE float sub(float a, float b) { return __fsub_rn(a, b); }
FT_HD_INLINE float div(float a, float b) { return __fdiv_rn(a, b); }
FT_HD_INLINE uint32_t bits_of(float x) { return __float_as_uint(x); }
FT_HD_INLINE float float_of(uint32_t bits) { return __uint_as_float(bits); }
#else
FT_HD_INLINE float mul(float a, float b) { return a * b; }
FT_HD_INLINE float add(float a, float b) { return a + b; }
FT_HD_INLINE float sub(float a, float b) { return a - b; }
FT_HD_INLINE float div(float a, float b) { return a / b; }
FT_HD_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
FT_HD_INLINE float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

// Key of -inf: the lowest key of any logit that is not NaN. A masked logit is -inf.
inline constexpr uint32_t kKeyOfMinusInf = 0x007fffffu;

// Unsigned key with the order of the floats: a < b exactly when key(a) < key(b); -0 counts as +0.
FT_HD_INLINE uint32_t ordered_key(float x) {
  const uint32_t bits = x == 0.0f ? 0u : bits_of(x);
  const uint32_t flip = static_cast<uint32_t>(-static_cast<int32_t>(bits >> 31)) | 0x80000000u;
  return bits ^ flip;
}

// Inverse of ordered_key, but for the sign of zero.
FT_HD_INLINE float float_of_key(uint32_t key) {
  return float_of((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

// A NaN, and +inf, which has no place in a softmax: such a row samples -1.
FT_HD_INLINE bool is_invalid_logit(float x) {
  return (bits_of(x) & 0x7fffffffu) > 0x7f800000u || bits_of(x) == 0x7f800000u;
}

// x = exp(x) for each x <= 0, within 2 ulp (Cephes' polynomial); 0 below -87 instead of a denormal,
// by a factor of 0, so that compilers make no branch of it. Each step for all of them before the
// next: they do not wait for each other's results.
template <int N>
FT_HD_INLINE void exp_nonpositive(float (&x)[N]) {
  constexpr float kSteps[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                              1.6666665459e-1f, 5.0000001201e-1f};
  float shifted[N];
  float r[N];
  float p[N];
  for (int i = 0; i < N; ++i) {
    const float clamped = x[i] < -87.0f ? -87.0f : x[i];
    // Adding 1.5 * 2^23 rounds to the nearest integer, which are then the lowest bits.
    shifted[i] = add(mul(clamped, 1.44269504088896341f), 12582912.0f);
    const float n = sub(shifted[i], 12582912.0f);
    r[i] = sub(clamped, mul(n, 0.693359375f));
    r[i] = sub(r[i], mul(n, -2.12194440e-4f));
    p[i] = 1.9875691500e-4f;
  }
  for (const float step : kSteps) {
    for (int i = 0; i < N; ++i) p[i] = add(mul(p[i], r[i]), step);
  }
  for (int i = 0; i < N; ++i) {
    const float y = add(add(mul(p[i], mul(r[i], r[i])), r[i]), 1.0f);
    x[i] = mul(y, float_of(x[i] < -87.0f ? 0 : (bits_of(shifted[i]) + 127) << 23));
  }
}
FT_HD_INLINE float exp_nonpositive(float x) {
  float one[1] = {x};
  exp_nonpositive(one);
  return one[0];
}

// log(x) for normal x in (0, 1], within 2 ulp also near 1 (Cephes' polynomial).
FT_HD_INLINE float log_unit(float x) {
  const uint32_t bits = bits_of(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  float m = float_of((bits & 0x007fffffu) | 0x3f000000u);  // [0.5, 1)
  const bool low = m < 0.707106781186547524f;
  e = low ? sub(e, 1.0f) : e;
  m = low ? sub(add(m, m), 1.0f) : sub(m, 1.0f);
  const float z = mul(m, m);
  float p = 7.0376836292e-2f;
  p = add(mul(p, m), -1.1514610310e-1f);
  p = add(mul(p, m), 1.1676998740e-1f);
  p = add(mul(p, m), -1.2420140846e-1f);
  p = add(mul(p, m), 1.4249322787e-1f);
  p = add(mul(p, m), -1.6668057665e-1f);
  p = add(mul(p, m), 2.0000714765e-1f);
  p = add(mul(p, m), -2.4999993993e-1f);
  p = add(mul(p, m), 3.3333331174e-1f);
  float y = mul(mul(p, m), z);
  y = add(y, mul(e, -2.12194440e-4f));
  y = sub(y, mul(0.5f, z));
  return add(add(m, y), mul(e, 0.693359375f));
}

// v = min((r + 0.5) 2^-32, 1 - 2^-24) in (0, 1) from a random word.
FT_HD_INLINE float unit_from_word(uint32_t r) {
  // 2^24 values of the upper bits and 2^8 of the lower ones are added as exact floats.
  const float high = static_cast<float>(static_cast<int32_t>(r >> 8));
  const float low = add(static_cast<float>(static_cast<int32_t>(r & 255u)), 0.5f);
  const float v = mul(add(mul(high, 256.0f), low), 2.3283064365386963e-10f);
  return v < 0.999999940395355225f ? v : 0.999999940395355225f;
}

// -log1p(-v), a positive exponential variate: log(1 - v) with Kahan's correction for the rounding
// of 1 - v.
FT_HD_INLINE float exponential_from_unit(float v) {
  const float u = sub(1.0f, v);
  const float d = sub(1.0f, u);
  const float y = div(mul(sub(0.0f, log_unit(u)), v), d == 0.0f ? 1.0f : d);
  return d == 0.0f ? v : y;
}

// w = exp((logit - max) / temperature), in [0, 1]; 0: the id cannot be drawn.
FT_HD_INLINE float weight_of(float logit, float max, float temperature) {
  return exp_nonpositive(div(sub(logit, max), temperature));
}

// round(w * 2^30): integers, so that sums do not depend on their order.
FT_HD_INLINE uint32_t mass_of(float weight) {
  const float scaled = mul(weight, 1073741824.0f);
  return static_cast<uint32_t>(
      static_cast<int32_t>(scaled < 8388608.0f ? add(scaled, 0.5f) : scaled));
}

// round(w * 2^40), w in [0, 1], as high * 2^20 + low. The parts are sums of their own, so that
// lanes of 32 bits add many of them.
struct FineMass {
  uint32_t high;  // at most 2^20
  uint32_t low;   // at most 2^20
};
FT_HD_INLINE FineMass fine_mass_of(float weight) {
  const float scaled = mul(weight, 1048576.0f);
  const auto high = static_cast<int32_t>(scaled);
  const float rest = sub(scaled, static_cast<float>(high));
  const auto low = static_cast<int32_t>(add(mul(rest, 1048576.0f), 0.5f));
  return {static_cast<uint32_t>(high), static_cast<uint32_t>(low)};
}

// log(sum of w) from the sum of fine masses.
FT_HD_INLINE double log_of_fine_mass(uint64_t mass) {
  return ::log(static_cast<double>(mass) * 9.094947017729282379150390625e-13);
}

// Log-probability of an id, given log(sum exp(l - max)).
FT_HD_INLINE float logprob_of(float logit, float max, double log_sum) {
  return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_sum);
}

// Ids with a logit of at least the key `floor` whose weight is at least `min_p`.
struct DrawnIds {
  float max;  // the highest logit
  float temperature;
  float min_p;
  uint32_t floor;
};

// The weight of a kept id, 0 for the others.
FT_HD_INLINE float drawn_weight_of(float logit, const DrawnIds& drawn) {
  if (ordered_key(logit) < drawn.floor) return 0.0f;
  const float weight = weight_of(logit, drawn.max, drawn.temperature);
  return weight < drawn.min_p ? 0.0f : weight;
}

// Log-probability of an id, given log(sum of the kept weights); -inf for what cannot be drawn.
FT_HD_INLINE float drawn_logprob_of(float logit, const DrawnIds& drawn, double log_sum) {
  if (drawn_weight_of(logit, drawn) <= 0.0f) return -INFINITY;
  const double below = static_cast<double>(logit) - static_cast<double>(drawn.max);
  return static_cast<float>(below / static_cast<double>(drawn.temperature) - log_sum);
}

// Mass that the ids kept by top_p must reach, out of `total`.
FT_HD_INLINE uint64_t top_p_mass(float top_p, uint64_t total) {
  const double wanted = static_cast<double>(top_p) * static_cast<double>(total);
  const uint64_t floor = static_cast<uint64_t>(wanted > 0.0 ? wanted : 0.0);
  const uint64_t mass = floor + (static_cast<double>(floor) < wanted ? 1 : 0);
  return mass > total ? total : (mass == 0 ? 1 : mass);
}

// Random words of ids 4 * block .. 4 * block + 3 for the token at `position`.
FT_HD_INLINE Philox4 noise_words(uint32_t block, int32_t position, int32_t choice, uint32_t purpose,
                                 uint64_t seed) {
  return philox4x32(block, static_cast<uint32_t>(position), static_cast<uint32_t>(choice), purpose,
                    seed);
}

// The draw: the id with the smallest score wins, ties to the lowest id. weight > 0.
FT_HD_INLINE float race_score(uint32_t word, float weight) {
  return div(exponential_from_unit(unit_from_word(word)), weight);
}

}  // namespace foretoken::sample_math
