#include "gguf/blocks/block_encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/bfloat16.h"
#include "base/half.h"
#include "base/quantized_rows.h"
#include "gguf/blocks/block_search.h"

namespace foretoken {
namespace {

constexpr int kGroup = 32;

void put_half(float value, std::byte* to) {
  const uint16_t bits = half_from_float(value);
  std::memcpy(to, &bits, sizeof bits);
}

using Group = std::span<const float, kGroup>;

void encode_f32(const float* values, const float*, int64_t count, std::byte* blocks) {
  if (count > 0) std::memcpy(blocks, values, static_cast<size_t>(count) * sizeof(float));
}

void encode_f16(const float* values, const float*, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) put_half(values[i], blocks + 2 * i);
}

void encode_bf16(const float* values, const float*, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = bf16_from_float(values[i]);
    std::memcpy(blocks + 2 * i, &bits, sizeof bits);
  }
}

float largest(const float* values) {
  return *std::max_element(values, values + kGroup,
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// 0 for a scale so small that its inverse is infinite: as a half it is 0 too.
float inverse(float scale) { return std::abs(scale) > 1e-38F ? 1 / scale : 0; }

void encode_q8_0(const float* values, const float*, int64_t count, std::byte* blocks) {
  for (; count > 0; --count, values += kGroup, blocks += 34) {
    const float scale = std::abs(largest(values)) / 127;
    put_half(scale, blocks);
    for (int i = 0; i < kGroup; ++i) {
      const float code = std::round(values[i] * inverse(scale));
      blocks[2 + i] =
          static_cast<std::byte>(static_cast<int8_t>(std::clamp(code, -127.0F, 127.0F)));
    }
  }
}

// Codes of four bits: the first half of them low, the second high.
void put_nibbles(const int* codes, std::byte* to) {
  for (int i = 0; i < kGroup / 2; ++i) {
    to[i] = static_cast<std::byte>((codes[i] & 15) | (codes[i + kGroup / 2] & 15) << 4);
  }
}

// The fifth bits in a word, then the lower ones.
void put_five_bits(const int* codes, std::byte* to) {
  uint32_t upper = 0;
  for (int i = 0; i < kGroup; ++i) upper |= static_cast<uint32_t>(codes[i] >> 4) << i;
  std::memcpy(to, &upper, sizeof upper);
  put_nibbles(codes, to + sizeof upper);
}

// Codes 0 .. 2 middle - 1, of which `middle` stands for 0. The element furthest from zero becomes
// code 0.
float centred_codes(const float* values, const float* importance, int middle, int* codes) {
  const auto half = static_cast<float>(middle);
  float scale = largest(values) / -half;
  if (importance != nullptr) {
    const Group group(values, kGroup);
    scale = best_code_scale(group, error_weights(group, importance), -half, half - 1);
    scale = half_to_float(half_from_float(scale));
  }
  const float factor = inverse(scale);
  for (int i = 0; i < kGroup; ++i) {
    codes[i] = static_cast<int>(std::clamp(values[i] * factor + half + 0.5F, 0.0F, 2 * half - 1));
  }
  return scale;
}

void encode_q4_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 18) {
    put_half(centred_codes(values, importance, 8, codes), blocks);
    put_nibbles(codes, blocks + 2);
    if (importance != nullptr) importance += kGroup;
  }
}

void encode_q5_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 22) {
    put_half(centred_codes(values, importance, 16, codes), blocks);
    put_five_bits(codes, blocks + 2);
    if (importance != nullptr) importance += kGroup;
  }
}

// Scale and minimum at `to`; codes 0 .. most from the smallest element to the largest.
void affine_codes(const float* values, const float* importance, int most, std::byte* to,
                  int* codes) {
  const auto [low, high] = std::minmax_element(values, values + kGroup);
  float min = *low, scale = (*high - *low) / static_cast<float>(most);
  if (importance != nullptr) {
    const Group group(values, kGroup);
    const AffineScale found = best_affine_scale(group, error_weights(group, importance),
                                                {static_cast<float>(most), true});
    min = half_to_float(half_from_float(-found.min));
    scale = half_to_float(half_from_float(found.scale));
  }
  put_half(scale, to);
  put_half(min, to + 2);
  const float factor = inverse(scale);
  for (int i = 0; i < kGroup; ++i) {
    const float code = (values[i] - min) * factor + 0.5F;
    codes[i] = static_cast<int>(std::clamp(code, 0.0F, static_cast<float>(most)));
  }
}

void encode_q4_1(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 20) {
    affine_codes(values, importance, 15, blocks, codes);
    put_nibbles(codes, blocks + 4);
    if (importance != nullptr) importance += kGroup;
  }
}

void encode_q5_1(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 24) {
    affine_codes(values, importance, 31, blocks, codes);
    put_five_bits(codes, blocks + 4);
    if (importance != nullptr) importance += kGroup;
  }
}

void encode_iq4_nl(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  const int8_t* table = code_values(CodeTable::kIq4);
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 18) {
    const Group group(values, kGroup);
    const float found = best_table_scale(group, error_weights(group, importance), table);
    put_half(found, blocks);
    const float factor = inverse_scale(half_to_float(half_from_float(found)));
    for (int i = 0; i < kGroup; ++i) codes[i] = nearest_in_table(values[i] * factor, table);
    put_nibbles(codes, blocks + 2);
    if (importance != nullptr) importance += kGroup;
  }
}

// Of equally near codes the first.
int nearest_e2m1(float value, const int8_t* table) {
  int best = 0;
  for (int code = 1; code < 16; ++code) {
    const auto distance = [&](int i) { return std::abs(static_cast<float>(table[i]) - value); };
    if (distance(code) < distance(best)) best = code;
  }
  return best;
}

// The power of two with which the largest element lies between the two largest codes or, as ggml
// has it, somewhat beyond them.
void encode_mxfp4(const float* values, const float*, int64_t count, std::byte* blocks) {
  const int8_t* table = code_values(CodeTable::kE2m1);
  constexpr int kBias = 127, kLargestExponent = 2;
  int codes[kGroup];
  for (; count > 0; --count, values += kGroup, blocks += 17) {
    const float most = std::abs(largest(values));
    const int exponent = most > 0 ? std::max(std::ilogb(most) - kLargestExponent, -kBias) : -kBias;
    blocks[0] = static_cast<std::byte>(exponent + kBias);
    // The table has doubles.
    for (int i = 0; i < kGroup; ++i) {
      codes[i] = most > 0 ? nearest_e2m1(std::ldexp(values[i], 1 - exponent), table) : 0;
    }
    put_nibbles(codes, blocks + 1);
  }
}

struct Encoder {
  std::string_view name;
  BlockEncode encode;
};

constexpr Encoder kEncoders[] = {
    {"F32", encode_f32},    {"F16", encode_f16},   {"BF16", encode_bf16}, {"Q8_0", encode_q8_0},
    {"Q4_0", encode_q4_0},  {"Q4_1", encode_q4_1}, {"Q5_0", encode_q5_0}, {"Q5_1", encode_q5_1},
    {"Q4_K", encode_q4_k},  {"Q5_K", encode_q5_k}, {"Q6_K", encode_q6_k}, {"IQ4_NL", encode_iq4_nl},
    {"MXFP4", encode_mxfp4}};

}  // namespace

BlockEncode find_block_encode(const BlockType& type) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.name == type.name) return encoder.encode;
  }
  return nullptr;
}

}  // namespace foretoken
