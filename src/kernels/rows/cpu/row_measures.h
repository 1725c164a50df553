#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/cpu/hot.h"

// What is told of a row's elements, whatever the number of rows is.

namespace foretoken::cpu {

FT_INLINE float mean_of_row(const float* x, int size) {
  Lanes lanes = {};
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes some;
    load(some, x + i);
    lanes += some;
  }
  float total = sum_lanes(lanes);
  for (; i < size; ++i) total += x[i];
  return total / static_cast<float>(size);
}

// Bits of magnitudes order as they do, and those of a NaN lie above all.
template <class T>
FT_INLINE float largest_magnitude(const T* x, int64_t count) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float value = load_one(x + i);
    uint32_t own;
    std::memcpy(&own, &value, sizeof own);
    own &= 0x7fffffffu;
    bits = own > bits ? own : bits;
  }
  float highest;
  std::memcpy(&highest, &bits, sizeof highest);
  return highest;
}

}  // namespace foretoken::cpu
