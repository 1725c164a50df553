#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace foretoken {

// Floats of eight and of four bits, as OCP's specifications of 2023 have them (8-bit floating
// point; microscaling formats). E4M3 has no infinities.

inline constexpr float kE4m3Most = 448;
inline constexpr float kE2m1Most = 6;

inline float e4m3_to_float(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t rest = code & 0x7fu;
  if (rest == 0x7fu) return std::numeric_limits<float>::quiet_NaN();
  if (rest < 8) {
    const float magnitude = static_cast<float>(rest) * 0x1p-9f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((rest << 20) + ((127u - 7u) << 23)));
}

// The nearest one, ties to even; beyond the range +-448.
inline uint8_t e4m3_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7fu;
  if (rest >= std::bit_cast<uint32_t>(kE4m3Most)) return sign | 0x7eu;
  if (rest < std::bit_cast<uint32_t>(0x1p-6f)) {
    // The sum's last bit is 2^-9, that of the smallest code.
    const float shifted = std::bit_cast<float>(rest) + 0x1p14f;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) -
                                       std::bit_cast<uint32_t>(0x1p14f));
  }
  const uint32_t odd = rest >> 20 & 1u;
  return sign | static_cast<uint8_t>((rest - ((127u - 7u) << 23) + 0x7ffffu + odd) >> 20);
}

// `code` below 16.
inline float e2m1_to_float(uint8_t code) {
  constexpr float kValues[16] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                 -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  return kValues[code];
}

// The nearest one, ties to even; beyond the range +-6. NaN becomes 0.
inline uint8_t e2m1_from_float(float value) {
  const float size = std::fabs(value);
  const int code = (size > 0.25F) + (size >= 0.75F) + (size > 1.25F) + (size >= 1.75F) +
                   (size > 2.5F) + (size >= 3.5F) + (size > 5.0F);
  return static_cast<uint8_t>(code | (std::signbit(value) && code > 0 ? 8 : 0));
}

// A power of two from 2^-127 to 2^127; 255 is no number.
inline float e8m0_to_float(uint8_t code) {
  if (code == 0xffu) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

}  // namespace foretoken
