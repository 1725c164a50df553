#pragma once
#include <bit>
#include <cstdint>

namespace foretoken {

// The value of a half-precision float given by its bits.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest < 0x400u) {
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + ((127u - 15u) << 23)));
}

// The bits of the nearest half-precision float, ties to even; beyond the range an infinity.
inline uint16_t half_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u;
  if (rest >= 0x47800000u) return sign | 0x7c00u;
  if (rest < 0x38800000u) {
    // The sum's last bit is 2^-24, that of the smallest half.
    const float shifted = std::bit_cast<float>(rest) + 0.5F;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  }
  const uint32_t odd = rest >> 13 & 1u;
  return sign | static_cast<uint16_t>((rest - ((127u - 15u) << 23) + 0xfffu + odd) >> 13);
}

}  // namespace foretoken
