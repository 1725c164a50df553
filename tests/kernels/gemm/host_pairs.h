#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace foretoken {

// Two bfloat16 in a word, the first one in the lower half, rounded to nearest with ties to even and
// with subnormal numbers, as a GPU's operations on pairs are.
struct HostPairs {
  static double value(uint32_t bits) { return std::bit_cast<float>((bits & 0xffffu) << 16); }
  static uint32_t rounded(double x) {
    if (x == 0) return std::signbit(x) ? 0x8000u : 0u;
    const int exponent = std::max(std::ilogb(x), -126);
    const double step = std::ldexp(1.0, exponent - 7);
    const auto nearest = static_cast<float>(std::nearbyint(x / step) * step);
    return std::bit_cast<uint32_t>(nearest) >> 16;
  }
  template <class Op>
  static uint32_t each(uint32_t a, uint32_t b, uint32_t c, const Op& op) {
    return rounded(op(value(a), value(b), value(c))) |
           rounded(op(value(a >> 16), value(b >> 16), value(c >> 16))) << 16;
  }

  static uint32_t multiply(uint32_t a, uint32_t b) {
    return each(a, b, 0, [](double x, double y, double) { return x * y; });
  }
  static uint32_t subtract(uint32_t a, uint32_t b) {
    return each(a, b, 0, [](double x, double y, double) { return x - y; });
  }
  static uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c) {
    return each(a, b, c, [](double x, double y, double z) { return std::fma(x, y, z); });
  }
  // Byte i of the result is that of b:a which nibble i of `places` names.
  static uint32_t bytes(uint32_t a, uint32_t b, uint32_t places) {
    const uint64_t both = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t place = places >> (i * 4) & 7u;
      result |= static_cast<uint32_t>(both >> (place * 8) & 255u) << (i * 8);
    }
    return result;
  }
};

}  // namespace foretoken
