#pragma once
#include "kernels/activation_math.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// kernels/sample_math.h and kernels/activation_math.h for eight values at once, with the same bits:
// the same operations in the same order. tests/kernels/lane_math_test.cpp holds them together.

// Eight rather than sixteen: gcc takes comparisons of wider vectors apart.
inline constexpr int kOctet = 8;
typedef float Octet __attribute__((vector_size(32)));
typedef uint32_t OctetU32 __attribute__((vector_size(32)));
typedef int32_t OctetI32 __attribute__((vector_size(32)));

FT_INLINE void load(Octet& out, const float* from) { std::memcpy(&out, from, sizeof out); }
FT_INLINE void store(float* to, const Octet& lanes) { std::memcpy(to, &lanes, sizeof lanes); }
FT_INLINE void store(uint16_t* to, const Octet& lanes) {
  typedef uint16_t OctetU16 __attribute__((vector_size(16)));
  const auto bits = reinterpret_cast<OctetU32>(lanes);
  const OctetU32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const auto is_nan = reinterpret_cast<OctetU32>((bits & 0x7fffffffu) > 0x7f800000u);
  const OctetU32 chosen = (is_nan & ((bits >> 16) | 0x40u)) | (~is_nan & rounded);
  const OctetU16 half = __builtin_convertvector(chosen, OctetU16);
  std::memcpy(to, &half, sizeof half);
}

FT_INLINE void exp_nonpositive(Octet& out, const Octet& x) {
  const Octet lowest = Octet{} - 87.0f;
  const Octet clamped = x < lowest ? lowest : x;
  const Octet n = clamped * 1.44269504088896341f + 12582912.0f - 12582912.0f;
  Octet r = clamped - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  Octet p = Octet{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const Octet y = p * (r * r) + r + 1.0f;
  const OctetI32 exponent = __builtin_convertvector(n, OctetI32) + 127;
  const Octet scale = reinterpret_cast<Octet>(exponent << 23);
  out = x < lowest ? Octet{} : y * scale;
}

FT_INLINE void log_unit(Octet& out, const Octet& x) {
  const auto bits = reinterpret_cast<OctetU32>(x);
  Octet e = __builtin_convertvector(reinterpret_cast<OctetI32>(bits >> 23) - 126, Octet);
  Octet m = reinterpret_cast<Octet>((bits & 0x007fffffu) | 0x3f000000u);
  const Octet half = Octet{} + 0.707106781186547524f;
  const OctetI32 low = m < half;
  e = low ? e - 1.0f : e;
  m = low ? m + m - 1.0f : m - 1.0f;
  const Octet z = m * m;
  Octet p = Octet{} + 7.0376836292e-2f;
  p = p * m + -1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m + -1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m + -1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m + -2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  Octet y = p * m * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  out = m + y + e * 0.693359375f;
}

FT_INLINE void exponential_from_words(Octet& out, const OctetU32& words) {
  const Octet high = __builtin_convertvector(reinterpret_cast<OctetI32>(words >> 8), Octet);
  const Octet low = __builtin_convertvector(reinterpret_cast<OctetI32>(words & 255u), Octet) + 0.5f;
  const Octet highest = Octet{} + 0.999999940395355225f;
  Octet v = (high * 256.0f + low) * 2.3283064365386963e-10f;
  v = v < highest ? v : highest;
  const Octet u = 1.0f - v;
  const Octet d = 1.0f - u;
  const OctetI32 tiny = d == Octet{};
  Octet log;
  log_unit(log, u);
  const Octet divisor = tiny ? Octet{} + 1.0f : d;
  out = tiny ? v : (0.0f - log) * v / divisor;
}

FT_INLINE void masses_of(OctetU32& out, const Octet& weights) {
  const Octet scaled = weights * 1073741824.0f;
  const Octet rounded = scaled < Octet{} + 8388608.0f ? scaled + 0.5f : scaled;
  out = reinterpret_cast<OctetU32>(__builtin_convertvector(rounded, OctetI32));
}

FT_INLINE void fine_masses_of(OctetU32& high, OctetU32& low, const Octet& weights) {
  const Octet scaled = weights * 1048576.0f;
  const OctetI32 whole = __builtin_convertvector(scaled, OctetI32);
  const Octet rest = scaled - __builtin_convertvector(whole, Octet);
  high = reinterpret_cast<OctetU32>(whole);
  low = reinterpret_cast<OctetU32>(__builtin_convertvector(rest * 1048576.0f + 0.5f, OctetI32));
}

FT_INLINE void ordered_keys(OctetU32& out, const Octet& x) {
  const OctetU32 bits = x == Octet{} ? OctetU32{} : reinterpret_cast<OctetU32>(x);
  const OctetU32 sign = reinterpret_cast<OctetU32>(reinterpret_cast<OctetI32>(bits) >> 31);
  out = bits ^ (sign | 0x80000000u);
}

FT_INLINE void tanh_of(Octet& out, const Octet& x) {
  const OctetI32 negative = x < Octet{};
  const Octet a = negative ? -x : x;
  const Octet z = x * x;
  Octet p = Octet{} - 5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z + -5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z + -3.33332819422e-1f;
  const Octet near = p * z * x + x;
  Octet e;
  exp_nonpositive(e, a * -2.0f);
  const Octet far = (1.0f - e) / (1.0f + e);
  out = a < Octet{} + 0.625f ? near : (negative ? -far : far);
}

FT_INLINE void soft_capped(Octet& out, const Octet& x, float cap, float inverse_cap) {
  tanh_of(out, x * inverse_cap);
  out = cap * out;
}

// Soft-caps n values in place.
FT_INLINE void soft_cap_all(float* x, float cap, int64_t n) {
  const float inverse = 1.0f / cap;
  int64_t i = 0;
  for (; i + kOctet <= n; i += kOctet) {
    Octet octet;
    load(octet, x + i);
    soft_capped(octet, octet, cap, inverse);
    store(x + i, octet);
  }
  for (; i < n; ++i) x[i] = activation_math::soft_capped(x[i], cap, inverse);
}

FT_INLINE void sigmoid(Octet& out, const Octet& x) {
  const OctetI32 negative = x < Octet{};
  Octet e;
  exp_nonpositive(e, negative ? x : -x);
  const Octet numerator = negative ? e : Octet{} + 1.0f;
  out = numerator / (1.0f + e);
}

FT_INLINE void gelu_share(Octet& out, const Octet& x) {
  const OctetI32 negative = x < Octet{};
  const Octet a = negative ? -x : x;
  const Octet t = 1.0f / (1.0f + a * 0.35f);
  Octet p = Octet{} - 0.02957654371857643f;
  p = p * t + 0.14606903493404388f;
  p = p * t + -0.26003289222717285f;
  p = p * t + 0.1640634983778f;
  p = p * t + -0.026422694325447083f;
  p = p * t + 0.10687646269798279f;
  p = p * t + 0.11949814110994339f;
  p = p * t + 0.13990597426891327f;
  p = p * t + 0.13961902260780334f;
  Octet e;
  exp_nonpositive(e, a * a * -0.5f);
  const Octet tail = p * t * e;
  out = negative ? tail : 1.0f - tail;
}

FT_INLINE void gelu_tanh_share(Octet& out, const Octet& x) {
  const Octet slope = x * x * 0.0713548162726f + 1.59576912160573f;
  sigmoid(out, x * slope);
}

}  // namespace foretoken::cpu
