#include "gguf/block_type.h"

#include <cstring>

#include "base/bfloat16.h"
#include "base/half.h"

namespace foretoken {
namespace {

uint16_t bits_at(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

float half_at(const std::byte* at) { return half_to_float(bits_at(at)); }

int byte_at(const std::byte* at) { return std::to_integer<int>(*at); }

int signed_at(const std::byte* at) { return static_cast<int8_t>(byte_at(at)); }

void decode_f32(const std::byte* blocks, int64_t count, float* out) {
  if (count > 0) std::memcpy(out, blocks, static_cast<size_t>(count) * sizeof(float));
}

void decode_f16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = half_at(blocks + 2 * i);
}

void decode_bf16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(bits_at(blocks + 2 * i));
}

// Scale, then 32 signed bytes.
void decode_q8_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 34) {
    const float scale = half_at(blocks);
    for (int i = 0; i < 32; ++i) *out++ = scale * static_cast<float>(signed_at(blocks + 2 + i));
  }
}

// Scale, then 32 values of 4 bits less 8: the low halves of 16 bytes, then the high ones.
void decode_q4_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 18, out += 32) {
    const float scale = half_at(blocks);
    for (int i = 0; i < 16; ++i) {
      const int pair = byte_at(blocks + 2 + i);
      out[i] = scale * static_cast<float>((pair & 15) - 8);
      out[i + 16] = scale * static_cast<float>((pair >> 4) - 8);
    }
  }
}

struct ScaleAndMin {
  int scale;
  int min;
};

// Eight pairs of 6 bits in 12 bytes: the first four have bytes of their own, whose upper bits hold
// those of the last four.
ScaleAndMin scale_and_min(const std::byte* packed, int index) {
  if (index < 4) return {byte_at(packed + index) & 63, byte_at(packed + index + 4) & 63};
  const int low = byte_at(packed + index + 4);
  return {(low & 15) | (byte_at(packed + index - 4) >> 6) << 4,
          (low >> 4) | (byte_at(packed + index) >> 6) << 4};
}

// Scale of the scales, scale of the minima, 12 bytes of both, 256 values of 4 bits in groups of 32.
void decode_q4_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 144) {
    const float scale = half_at(blocks);
    const float min = half_at(blocks + 2);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin packed = scale_and_min(blocks + 4, group);
      const float group_scale = scale * static_cast<float>(packed.scale);
      const float group_min = min * static_cast<float>(packed.min);
      const std::byte* values = blocks + 16 + group / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        const int pair = byte_at(values + i);
        const int value = group % 2 == 0 ? pair & 15 : pair >> 4;
        *out++ = group_scale * static_cast<float>(value) - group_min;
      }
    }
  }
}

// 128 bytes of low 4 bits, 64 of high 2 bits, 16 signed scales of 16 values each, their scale.
void decode_q6_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 210) {
    const float scale = half_at(blocks + 208);
    for (int half = 0; half < 2; ++half) {
      const std::byte* low = blocks + half * 64;
      const std::byte* high = blocks + 128 + half * 32;
      const std::byte* scales = blocks + 192 + half * 8;
      for (int i = 0; i < 128; ++i) {
        const int quarter = i / 32, lane = i % 32;
        const int pair = byte_at(low + lane + quarter % 2 * 32);
        const int low_bits = quarter < 2 ? pair & 15 : pair >> 4;
        const int high_bits = (byte_at(high + lane) >> (2 * quarter)) & 3;
        const int value = (low_bits | high_bits << 4) - 32;
        *out++ = scale * static_cast<float>(signed_at(scales + i / 16)) * static_cast<float>(value);
      }
    }
  }
}

constexpr BlockType kTypes[] = {
    {0, "F32", 1, 4, decode_f32},        {1, "F16", 1, 2, decode_f16},
    {2, "Q4_0", 32, 18, decode_q4_0},    {3, "Q4_1", 32, 20, nullptr},
    {6, "Q5_0", 32, 22, nullptr},        {7, "Q5_1", 32, 24, nullptr},
    {8, "Q8_0", 32, 34, decode_q8_0},    {9, "Q8_1", 32, 36, nullptr},
    {10, "Q2_K", 256, 84, nullptr},      {11, "Q3_K", 256, 110, nullptr},
    {12, "Q4_K", 256, 144, decode_q4_k}, {13, "Q5_K", 256, 176, nullptr},
    {14, "Q6_K", 256, 210, decode_q6_k}, {15, "Q8_K", 256, 292, nullptr},
    {24, "I8", 1, 1, nullptr},           {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr},          {27, "I64", 1, 8, nullptr},
    {28, "F64", 1, 8, nullptr},          {30, "BF16", 1, 2, decode_bf16},
};

}  // namespace

std::span<const BlockType> block_types() { return kTypes; }

const BlockType* find_block_type(uint32_t number) {
  for (const BlockType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace foretoken
