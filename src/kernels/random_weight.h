#pragma once
#include <cstdint>

#include "base/host_device.h"

namespace foretoken {

// Element `index` of a random tensor: uniform with deviation scale * 2^31 / sqrt(3). A pure
// function of its arguments with the same bits on every device.
FT_HD inline float random_weight(uint64_t seed, uint64_t index, float scale) {
  // The finaliser of SplitMix64 (Steele et al. 2014): a bijection that mixes all bits.
  uint64_t x = seed + index * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  return static_cast<float>(static_cast<int32_t>(x >> 32)) * scale;
}

}  // namespace foretoken
