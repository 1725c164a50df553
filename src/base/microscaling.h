#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace foretoken {

// Floats of OCP's microscaling formats (2023): E2M1 of four bits, and E8M0, an exponent alone, by
// which a group of them is scaled.

inline constexpr float kMaxE2m1 = 6;

// `code` below 16.
inline float e2m1_value(uint8_t code) {
  constexpr float kValues[16] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                 -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  return kValues[code];
}

// The code of the nearest number, ties to even; beyond the range +-6. NaN becomes 0.
inline uint8_t e2m1_code(float x) {
  const float size = std::fabs(x);
  const int code = int{size > 0.25F} + int{size >= 0.75F} + int{size > 1.25F} + int{size >= 1.75F} +
                   int{size > 2.5F} + int{size >= 3.5F} + int{size > 5.0F};
  return static_cast<uint8_t>(code | (std::signbit(x) && code > 0 ? 8 : 0));
}

// 2^(code - 127); 255 is no number.
inline float e8m0_value(uint8_t code) {
  if (code == 0xffu) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

}  // namespace foretoken
