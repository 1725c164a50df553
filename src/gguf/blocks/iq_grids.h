#pragma once
#include <cstdint>

namespace foretoken {

// The points that codes of ggml's IQ types stand for: magnitudes of eight or four neighbours, of
// IQ1 the values themselves. Tables of the format, ggml-common.h (MIT). Any thread.
const int8_t (&iq2_xxs_grid())[256][8];
const int8_t (&iq2_xs_grid())[512][8];
const int8_t (&iq2_s_grid())[1024][8];
const int8_t (&iq3_xxs_grid())[256][4];
const int8_t (&iq3_s_grid())[512][4];
const int8_t (&iq1_grid())[2048][8];

// Eight signs from seven of them: their number of ones is even. Bit i set: neighbour i is negative.
constexpr uint8_t iq_signs(uint32_t seven) {
  seven &= 127;
  return static_cast<uint8_t>(seven | (static_cast<uint32_t>(__builtin_parity(seven)) << 7));
}

}  // namespace foretoken
