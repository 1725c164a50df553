#include "gguf/blocks/block_type.h"

#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/quantized_rows.h"
#include "gguf/blocks/block_decode.h"

namespace foretoken {
namespace {

void decode_f32(const std::byte* blocks, int64_t count, float* out) {
  if (count > 0) std::memcpy(out, blocks, static_cast<size_t>(count) * sizeof(float));
}

void decode_f16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = half_number_at(blocks + 2 * i);
}

void decode_bf16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(number_at<uint16_t>(blocks + 2 * i));
}

// Rounded to what a float holds.
void decode_f64(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(number_at<double>(blocks + 8 * i));
  }
}

// Signed bytes behind a scale, `first` bytes from the beginning of a block.
void decode_bytes(const std::byte* blocks, int64_t count, int first, float* out) {
  for (; count > 0; --count, blocks += 32 + first) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) {
      *out++ = scale * static_cast<float>(signed_number_at(blocks + first + i));
    }
  }
}

// Scale, then 32 signed bytes.
void decode_q8_0(const std::byte* blocks, int64_t count, float* out) {
  decode_bytes(blocks, count, 2, out);
}

// With the scaled sum behind the scale.
void decode_q8_1(const std::byte* blocks, int64_t count, float* out) {
  decode_bytes(blocks, count, 4, out);
}

// Scale, then 32 values of 4 bits less 8: the low halves of 16 bytes, then the high ones.
void decode_q4_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 18, out += 32) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 16; ++i) {
      const int pair = byte_number_at(blocks + 2 + i);
      out[i] = scale * static_cast<float>((pair & 15) - 8);
      out[i + 16] = scale * static_cast<float>((pair >> 4) - 8);
    }
  }
}

// Scale, minimum, 32 values of 4 bits as in Q4_0.
void decode_q4_1(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 20, out += 32) {
    const float scale = half_number_at(blocks), min = half_number_at(blocks + 2);
    for (int i = 0; i < 16; ++i) {
      const int pair = byte_number_at(blocks + 4 + i);
      out[i] = scale * static_cast<float>(pair & 15) + min;
      out[i + 16] = scale * static_cast<float>(pair >> 4) + min;
    }
  }
}

// Value i of 32 whose fifth bits stand in a word in front of 16 bytes of lower ones.
int five_bits(const std::byte* word, int i) {
  const int pair = byte_number_at(word + 4 + i % 16);
  const auto high = static_cast<int>(number_at<uint32_t>(word) >> i & 1);
  return (i < 16 ? pair & 15 : pair >> 4) | high << 4;
}

// Scale, fifth bits, lower ones; less 16.
void decode_q5_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 22) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) *out++ = scale * static_cast<float>(five_bits(blocks + 2, i) - 16);
  }
}

// Scale, minimum, fifth bits, lower ones.
void decode_q5_1(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 24) {
    const float scale = half_number_at(blocks), min = half_number_at(blocks + 2);
    for (int i = 0; i < 32; ++i)
      *out++ = scale * static_cast<float>(five_bits(blocks + 4, i)) + min;
  }
}

// Half of 2^(byte - 127); below it the bits run out.
float half_power(int exponent) {
  const uint32_t bits =
      exponent < 2 ? 0x00200000U << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A power of two for 32 values: the low halves of 16 bytes, then the high ones.
void decode_mxfp4(const std::byte* blocks, int64_t count, float* out) {
  const int8_t* values = code_values(CodeTable::kE2m1);
  for (; count > 0; --count, blocks += 17, out += 32) {
    const float scale = half_power(byte_number_at(blocks));
    for (int i = 0; i < 16; ++i) {
      const int pair = byte_number_at(blocks + 1 + i);
      out[i] = scale * static_cast<float>(values[pair & 15]);
      out[i + 16] = scale * static_cast<float>(values[pair >> 4]);
    }
  }
}

// Half of a number of four bits of exponent and three of fraction (E4M3 without a sign).
float half_of_e4m3(int byte) {
  if (byte == 0 || byte == 0x7f) return 0;
  const int exponent = byte >> 3 & 15;
  const auto fraction = static_cast<float>(byte & 7);
  return exponent == 0 ? std::ldexp(fraction, -10) : std::ldexp(1 + fraction / 8, exponent - 8);
}

// Four scales, then for each eight bytes of sixteen values.
void decode_nvfp4(const std::byte* blocks, int64_t count, float* out) {
  const int8_t* values = code_values(CodeTable::kE2m1);
  for (; count > 0; --count, blocks += 36) {
    for (int group = 0; group < 4; ++group, out += 16) {
      const float scale = half_of_e4m3(byte_number_at(blocks + group));
      for (int i = 0; i < 8; ++i) {
        const int pair = byte_number_at(blocks + 4 + 8 * group + i);
        out[i] = scale * static_cast<float>(values[pair & 15]);
        out[i + 8] = scale * static_cast<float>(values[pair >> 4]);
      }
    }
  }
}

// A bit for each element: plus or minus the scale.
void decode_q1_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 18, out += 128) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 128; ++i) {
      out[i] = (byte_number_at(blocks + 2 + i / 8) >> i % 8 & 1) != 0 ? scale : -scale;
    }
  }
}

// Two bits for each element: -1, 0, 1 or 2 times the scale.
void decode_q2_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 18, out += 64) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 64; ++i) {
      const int code = byte_number_at(blocks + 2 + i / 4) >> 2 * (i % 4) & 3;
      out[i] = static_cast<float>(code - 1) * scale;
    }
  }
}

// Two bits for each element, which stand 32 apart in a byte, the first in the highest.
void decode_i2_s(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 32, out += 128) {
    for (int i = 0; i < 128; ++i) {
      const int code = byte_number_at(blocks + i % 32) >> (6 - i / 32 * 2) & 3;
      out[i] = static_cast<float>(code - 1);
    }
  }
}

constexpr BlockType kBitnetType = {36, "I2_S", 128, 32, decode_i2_s};

constexpr BlockType kTypes[] = {
    {0, "F32", 1, 4, decode_f32},
    {1, "F16", 1, 2, decode_f16},
    {2, "Q4_0", 32, 18, decode_q4_0},
    {3, "Q4_1", 32, 20, decode_q4_1},
    {6, "Q5_0", 32, 22, decode_q5_0},
    {7, "Q5_1", 32, 24, decode_q5_1},
    {8, "Q8_0", 32, 34, decode_q8_0},
    {9, "Q8_1", 32, 36, decode_q8_1},
    {10, "Q2_K", 256, 84, decode_q2_k},
    {11, "Q3_K", 256, 110, decode_q3_k},
    {12, "Q4_K", 256, 144, decode_q4_k},
    {13, "Q5_K", 256, 176, decode_q5_k},
    {14, "Q6_K", 256, 210, decode_q6_k},
    {15, "Q8_K", 256, 292, decode_q8_k},
    {16, "IQ2_XXS", 256, 66, decode_iq2_xxs},
    {17, "IQ2_XS", 256, 74, decode_iq2_xs},
    {18, "IQ3_XXS", 256, 98, decode_iq3_xxs},
    {19, "IQ1_S", 256, 50, decode_iq1_s},
    {20, "IQ4_NL", 32, 18, decode_iq4_nl},
    {21, "IQ3_S", 256, 110, decode_iq3_s},
    {22, "IQ2_S", 256, 82, decode_iq2_s},
    {23, "IQ4_XS", 256, 136, decode_iq4_xs},
    {24, "I8", 1, 1, nullptr},
    {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr},
    {27, "I64", 1, 8, nullptr},
    {28, "F64", 1, 8, decode_f64},
    {29, "IQ1_M", 256, 56, decode_iq1_m},
    {30, "BF16", 1, 2, decode_bf16},
    {34, "TQ1_0", 256, 54, decode_tq1_0},
    {35, "TQ2_0", 256, 66, decode_tq2_0},
    {39, "MXFP4", 32, 17, decode_mxfp4},
    {40, "NVFP4", 64, 36, decode_nvfp4},
    {41, "Q1_0", 128, 18, decode_q1_0},
    {42, "Q2_0", 64, 18, decode_q2_0},
};

}  // namespace

std::span<const BlockType> block_types() { return kTypes; }

const BlockType* find_block_type(uint32_t number) {
  for (const BlockType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

const BlockType* find_block_type(std::string_view name) {
  for (const BlockType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

const BlockType* find_bitnet_type(uint32_t number) {
  return number == kBitnetType.number ? &kBitnetType : nullptr;
}

int64_t gguf_tail_bytes(const BlockType& type) { return &type == &kBitnetType ? 32 : 0; }

}  // namespace foretoken
