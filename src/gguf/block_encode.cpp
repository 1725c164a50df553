#include "gguf/block_encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/half.h"

namespace foretoken {
namespace {

constexpr int kGroup = 32;

void put_half(float value, std::byte* to) {
  const uint16_t bits = half_from_float(value);
  std::memcpy(to, &bits, sizeof bits);
}

void encode_f32(const float* values, int64_t count, std::byte* blocks) {
  if (count > 0) std::memcpy(blocks, values, static_cast<size_t>(count) * sizeof(float));
}

void encode_f16(const float* values, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) put_half(values[i], blocks + 2 * i);
}

void encode_bf16(const float* values, int64_t count, std::byte* blocks) {
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

void encode_q8_0(const float* values, int64_t count, std::byte* blocks) {
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

// The element furthest from zero becomes code 0, which stands for -8.
void encode_q4_0(const float* values, int64_t count, std::byte* blocks) {
  for (; count > 0; --count, values += kGroup, blocks += 18) {
    const float scale = largest(values) / -8;
    const float factor = inverse(scale);
    put_half(scale, blocks);
    const auto code = [&](int i) {
      return static_cast<int>(std::clamp(values[i] * factor + 8.5F, 0.0F, 15.0F));
    };
    for (int i = 0; i < kGroup / 2; ++i) {
      blocks[2 + i] = static_cast<std::byte>(code(i) | code(i + kGroup / 2) << 4);
    }
  }
}

struct Encoder {
  std::string_view name;
  BlockEncode encode;
};

constexpr Encoder kEncoders[] = {
    {"F32", encode_f32},   {"F16", encode_f16},   {"BF16", encode_bf16}, {"Q8_0", encode_q8_0},
    {"Q4_0", encode_q4_0}, {"Q4_K", encode_q4_k}, {"Q6_K", encode_q6_k}};

}  // namespace

BlockEncode find_block_encode(const BlockType& type) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.name == type.name) return encoder.encode;
  }
  return nullptr;
}

}  // namespace foretoken
