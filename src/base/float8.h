#pragma once
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace foretoken {

// E4M3 of OCP's 8-bit floating point specification (2023): a sign, four bits of exponent with a
// bias of 7, three of mantissa, no infinities. Codes 0x7f and 0xff are NaN.
inline constexpr float kMaxE4m3 = 448.0f;

// The number that a code stands for, exactly.
FT_HD inline float e4m3_value(uint8_t code) {
  const uint32_t magnitude = code & 0x7fu;
  // A number without a leading one gets it, and the smallest number that has one is taken away.
  const bool is_small = magnitude < 8;
  uint32_t bits = ((magnitude + (is_small ? 8u : 0u)) << 20) + (120u << 23);
  float value;
  memcpy(&value, &bits, sizeof value);
  value -= is_small ? 0x1p-6f : 0.0f;
  memcpy(&bits, &value, sizeof bits);
  if (magnitude == 0x7fu) bits = 0x7fc00000u;
  bits |= (code & 0x80u) << 24;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The code of the nearest number, ties to even; what is larger than kMaxE4m3 becomes that, and NaN
// stays NaN. Without branches, so that loops over it are compiled to vectors.
FT_HD inline uint8_t e4m3_code(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 24 & 0x80u;
  bits &= 0x7fffffffu;
  const bool is_nan = bits > 0x7f800000u;
  bits = bits > 0x43e00000u ? 0x43e00000u : bits;  // 448
  // Below 2^-6 codes count 2^-9: their number is in the lowest bits of 2^14 + |x|.
  float moved;
  memcpy(&moved, &bits, sizeof moved);
  moved += 0x1p14f;
  uint32_t counted;
  memcpy(&counted, &moved, sizeof counted);
  const uint32_t rounded = ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - (120u << 3);
  const uint32_t magnitude = bits < 0x3c800000u ? counted - 0x46800000u : rounded;
  return static_cast<uint8_t>(sign | (is_nan ? 0x7fu : magnitude));
}

// What to divide a group of numbers by, before they become codes, whose largest magnitude is
// `highest`. What is too small to be divided has codes of zero; an infinity or NaN makes all of the
// group NaN.
FT_HD inline float fp8_group_scale(float highest) {
  return highest < 1e-30f ? 1.0f : highest / kMaxE4m3;
}

}  // namespace foretoken
