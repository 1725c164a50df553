#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/half.h"
#include "gguf/blocks/block_encode.h"
#include "gguf/blocks/block_search.h"

namespace foretoken {
namespace {

constexpr int kBlock = 256;

void store_half(float value, std::byte* to) {
  const uint16_t bits = half_from_float(value);
  std::memcpy(to, &bits, sizeof bits);
}

float stored_half(float value) { return half_to_float(half_from_float(value)); }

int nearest(float value, int least, int most) {
  return static_cast<int>(nearest_code(value, static_cast<float>(least), static_cast<float>(most)));
}

const float* importance_at(const float* importance, size_t element) {
  return importance != nullptr ? importance + element : nullptr;
}

// Eight pairs of 6 bits; block_type.cpp has the order.
void pack_pairs(std::span<const int, 8> scales, std::span<const int, 8> mins, std::byte* packed) {
  for (size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::byte>(scales[i] | scales[i + 4] >> 4 << 6);
    packed[i + 4] = static_cast<std::byte>(mins[i] | mins[i + 4] >> 4 << 6);
    packed[i + 8] = static_cast<std::byte>((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
  }
}

// Codes 0 .. most of a block, behind the scales that they have at `to`: two halves and twelve
// bytes.
void encode_affine_groups(const float* values, const float* importance, int most, std::byte* to,
                          std::array<int, kBlock>& codes) {
  std::array<AffineScale, 8> groups;
  AffineScale top;
  for (size_t g = 0; g < 8; ++g) {
    const std::span<const float, 32> group(values + 32 * g, 32);
    groups[g] = best_affine_scale(group, error_weights(group, importance_at(importance, 32 * g)),
                                  {static_cast<float>(most), false});
    top = {std::max(top.scale, groups[g].scale), std::max(top.min, groups[g].min)};
  }
  const AffineScale unit{stored_half(top.scale / 63), stored_half(top.min / 63)};
  store_half(unit.scale, to);
  store_half(unit.min, to + 2);
  std::array<int, 8> scales;
  std::array<int, 8> mins;
  for (size_t g = 0; g < 8; ++g) {
    scales[g] = nearest(groups[g].scale * inverse_scale(unit.scale), 0, 63);
    mins[g] = nearest(groups[g].min * inverse_scale(unit.min), 0, 63);
    const float scale = unit.scale * float(scales[g]), min = unit.min * float(mins[g]);
    for (size_t i = 32 * g; i < 32 * g + 32; ++i) {
      codes[i] = nearest((values[i] + min) * inverse_scale(scale), 0, most);
    }
  }
  pack_pairs(scales, mins, to + 4);
}

void put_low_bits(const std::array<int, kBlock>& codes, std::byte* to) {
  for (size_t pair = 0; pair < 4; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const int low = codes[64 * pair + i] & 15, high = codes[64 * pair + 32 + i] & 15;
      to[32 * pair + i] = static_cast<std::byte>(low | high << 4);
    }
  }
}

void encode_one_q4_k(const float* values, const float* importance, std::byte* block) {
  std::array<int, kBlock> codes;
  encode_affine_groups(values, importance, 15, block, codes);
  put_low_bits(codes, block + 16);
}

void encode_one_q5_k(const float* values, const float* importance, std::byte* block) {
  std::array<int, kBlock> codes;
  encode_affine_groups(values, importance, 31, block, codes);
  for (size_t i = 0; i < 32; ++i) {
    int upper = 0;
    for (size_t g = 0; g < 8; ++g) upper |= codes[32 * g + i] >> 4 << g;
    block[16 + i] = static_cast<std::byte>(upper);
  }
  put_low_bits(codes, block + 48);
}

void encode_one_q6_k(const float* values, const float* importance, std::byte* block) {
  std::array<float, 16> groups;
  for (size_t g = 0; g < 16; ++g) {
    const std::span<const float, 16> group(values + 16 * g, 16);
    groups[g] =
        best_code_scale(group, error_weights(group, importance_at(importance, 16 * g)), -32, 31);
  }
  const float extreme = *std::max_element(
      groups.begin(), groups.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float unit = stored_half(extreme / -128);
  std::memset(block, 0, 192);
  store_half(unit, block + 208);
  for (int g = 0; g < 16; ++g) {
    const int multiple = nearest(groups[static_cast<size_t>(g)] * inverse_scale(unit), -128, 127);
    block[192 + g] = static_cast<std::byte>(static_cast<int8_t>(multiple));
    const float factor = inverse_scale(unit * float(multiple));
    for (int i = 16 * g; i < 16 * g + 16; ++i) {
      const int code = nearest(values[i] * factor, -32, 31) + 32;
      const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
      block[64 * half + quarter % 2 * 32 + lane] |=
          static_cast<std::byte>((code & 15) << (quarter < 2 ? 0 : 4));
      block[128 + 32 * half + lane] |= static_cast<std::byte>(code >> 4 << (2 * quarter));
    }
  }
}

using EncodeOne = void (*)(const float* values, const float* importance, std::byte* block);

void encode_each(EncodeOne encode, int64_t bytes, const float* values, const float* importance,
                 int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) {
    encode(values + kBlock * i, importance_at(importance, static_cast<size_t>(kBlock * i)),
           blocks + bytes * i);
  }
}

}  // namespace

void encode_q4_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_each(encode_one_q4_k, 144, values, importance, count, blocks);
}

void encode_q5_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_each(encode_one_q5_k, 176, values, importance, count, blocks);
}

void encode_q6_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_each(encode_one_q6_k, 210, values, importance, count, blocks);
}

}  // namespace foretoken
