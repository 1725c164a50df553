#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace foretoken {

// What BlockType::decode of the types is made of; the layouts are those of ggml (ggml-common.h).
// All write the floats of `count` blocks, with the bits of ggml's own Python package.
using BlockDecode = void (*)(const std::byte* blocks, int64_t count, float* out);

// block_decode_k.cpp: super blocks of 256 elements.
void decode_q2_k(const std::byte* blocks, int64_t count, float* out);
void decode_q3_k(const std::byte* blocks, int64_t count, float* out);
void decode_q4_k(const std::byte* blocks, int64_t count, float* out);
void decode_q5_k(const std::byte* blocks, int64_t count, float* out);
void decode_q6_k(const std::byte* blocks, int64_t count, float* out);
void decode_q8_k(const std::byte* blocks, int64_t count, float* out);
void decode_tq1_0(const std::byte* blocks, int64_t count, float* out);
void decode_tq2_0(const std::byte* blocks, int64_t count, float* out);

// block_decode_iq.cpp: codes that stand for points of grids or tables.
void decode_iq1_s(const std::byte* blocks, int64_t count, float* out);
void decode_iq1_m(const std::byte* blocks, int64_t count, float* out);
void decode_iq2_xxs(const std::byte* blocks, int64_t count, float* out);
void decode_iq2_xs(const std::byte* blocks, int64_t count, float* out);
void decode_iq2_s(const std::byte* blocks, int64_t count, float* out);
void decode_iq3_xxs(const std::byte* blocks, int64_t count, float* out);
void decode_iq3_s(const std::byte* blocks, int64_t count, float* out);
void decode_iq4_nl(const std::byte* blocks, int64_t count, float* out);
void decode_iq4_xs(const std::byte* blocks, int64_t count, float* out);

// Numbers inside blocks.
template <class T>
T number_at(const std::byte* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}
inline float half_number_at(const std::byte* at) { return half_to_float(number_at<uint16_t>(at)); }
// Bits of the half of an IQ1_M block, whose scales have four each in their highest ones.
inline uint16_t iq1_m_scale(const std::byte* block) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    bits |= uint32_t{number_at<uint16_t>(block + 48 + 2 * i)} >> 12 << (4 * i);
  }
  return static_cast<uint16_t>(bits);
}
inline int byte_number_at(const std::byte* at) { return std::to_integer<int>(*at); }
inline int signed_number_at(const std::byte* at) { return number_at<int8_t>(at); }

// Scale and minimum of a group of Q4_K and Q5_K: eight pairs of 6 bits in 12 bytes, of which the
// first four have bytes of their own, whose upper bits hold those of the last four.
struct ScaleAndMin {
  int scale;
  int min;
};
ScaleAndMin scale_and_min(const std::byte* packed, int index);

// The signed scale of a group of sixteen of Q3_K: sixteen of 6 bits in 12 bytes, less 32.
int q3_k_scale(const std::byte* packed, int index);

// The scale of a group of IQ4_XS: low and high bits of eight scales, less 32.
int iq4_xs_scale(const std::byte* block, int group);

// The numbers -1, 0 and 1 plus one of a block of TQ1_0.
void tq1_0_digits(const std::byte* block, uint8_t (&digits)[256]);

}  // namespace foretoken
