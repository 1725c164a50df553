#pragma once
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace foretoken {

// Of integer codes that share a scale: x is about scale * code; the code is x * inverse, rounded.
// An infinity or NaN makes the scale NaN and the inverse zero; where all elements are below 1e-30,
// both are zero.
struct CodeScale {
  float scale;
  float inverse;
};

// For codes from -most to most. bits: of the largest magnitude.
FT_HD inline CodeScale scale_of_highest(uint32_t bits, float most) {
  constexpr uint32_t kInfinity = 0x7f800000u, kNone = 0x7fc00000u;
  constexpr float kSmallest = 1e-30f;  // below it the inverse may overflow
  float highest, none;
  memcpy(&highest, &bits, sizeof highest);
  memcpy(&none, &kNone, sizeof none);
  if (bits >= kInfinity) return {none, 0};
  if (highest < kSmallest) return {0, 0};
  return {highest * (1.0f / most), most / highest};
}

}  // namespace foretoken
