#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/half.h"
#include "gguf/block_encode.h"

namespace foretoken {
namespace {

constexpr int kBlock = 256;
constexpr int kTries = 6;          // scales that are tried on each side of the plain one
constexpr float kTryStep = 0.15F;  // of the number of codes
constexpr float kTiny = 1e-30F;

void store_half(float value, std::byte* to) {
  const uint16_t bits = half_from_float(value);
  std::memcpy(to, &bits, sizeof bits);
}

float stored_half(float value) { return half_to_float(half_from_float(value)); }

// To the nearest integer, ties to even: adding 1.5 * 2^23 leaves no bits behind the point.
float rounded(float value) { return value + 0x1.8p23F - 0x1.8p23F; }

float code_of(float value, float least, float most) {
  return rounded(std::clamp(value, least, most));
}

int nearest(float value, int least, int most) {
  return static_cast<int>(code_of(value, static_cast<float>(least), static_cast<float>(most)));
}

float inverse_or_zero(float value) { return std::abs(value) > kTiny ? 1 / value : 0; }

// What the error of an element counts: large weights matter more, small ones still do.
template <size_t N>
std::array<float, N> weights_of(std::span<const float, N> values) {
  float squares = 0;
  for (const float value : values) squares += value * value;
  const float typical = std::sqrt(squares / N);
  std::array<float, N> weights;
  for (size_t i = 0; i < N; ++i) weights[i] = typical + std::abs(values[i]) + kTiny;
  return weights;
}

// value = scale * code - min, with codes 0..15 and min >= 0.
struct Affine {
  float scale = 0;
  float min = 0;
};

using Group = std::span<const float, 32>;

// An affine map and the squared error that it leaves.
struct Fit {
  Affine affine;
  double error;
};

// The least squared error for the codes that `affine` gives.
Fit fitted(Group values, std::span<const float, 32> weights, Affine affine) {
  const float factor = inverse_or_zero(affine.scale), shift = affine.min * factor;
  float w = 0, wx = 0, wxx = 0, wc = 0, wcc = 0, wcx = 0;
  for (size_t i = 0; i < 32; ++i) {
    const float code = code_of(values[i] * factor + shift, 0, 15);
    const float weighted = weights[i] * values[i], of_code = weights[i] * code;
    w += weights[i];
    wx += weighted;
    wxx += weighted * values[i];
    wc += of_code;
    wcc += of_code * code;
    wcx += of_code * values[i];
  }
  const double determinant = double{w} * wcc - double{wc} * wc;
  if (determinant > 0) {
    const double scale = (double{w} * wcx - double{wc} * wx) / determinant;
    const double min = (double{wc} * wcx - double{wcc} * wx) / determinant;
    const Affine found{static_cast<float>(scale), static_cast<float>(min)};
    if (min >= 0) return {found, wxx - scale * wcx + min * wx};
  }
  if (wcc <= 0) return {{0, std::max(-wx / w, 0.0F)}, wxx - double{wx} * wx / w};
  const double scale = double{wcx} / wcc;
  return {{static_cast<float>(scale), 0}, wxx - scale * wcx};
}

Affine best_affine(Group values) {
  const auto weights = weights_of(values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float min = std::max(-*low, 0.0F);
  const float range = std::max(*high, 0.0F) + min;
  if (range <= kTiny) return {0, min};
  Fit best = fitted(values, weights, {range / 15, min});
  for (int i = -kTries; i <= kTries; ++i) {
    const float codes = 15 + kTryStep * static_cast<float>(i);
    const Fit tried = fitted(values, weights, {range / codes, min});
    if (tried.error < best.error && tried.affine.scale > 0) best = tried;
  }
  return best.affine;
}

// Eight pairs of 6 bits; block_type.cpp has the order.
void pack_pairs(std::span<const int, 8> scales, std::span<const int, 8> mins, std::byte* packed) {
  for (size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::byte>(scales[i] | scales[i + 4] >> 4 << 6);
    packed[i + 4] = static_cast<std::byte>(mins[i] | mins[i + 4] >> 4 << 6);
    packed[i + 8] = static_cast<std::byte>((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
  }
}

void encode_one_q4_k(const float* values, std::byte* block) {
  std::array<Affine, 8> groups;
  Affine most;
  for (size_t g = 0; g < 8; ++g) {
    groups[g] = best_affine(Group(values + 32 * g, 32));
    most = {std::max(most.scale, groups[g].scale), std::max(most.min, groups[g].min)};
  }
  const Affine unit{stored_half(most.scale / 63), stored_half(most.min / 63)};
  store_half(unit.scale, block);
  store_half(unit.min, block + 2);
  std::array<int, 8> scales;
  std::array<int, 8> mins;
  std::array<int, kBlock> codes;
  for (size_t g = 0; g < 8; ++g) {
    scales[g] = nearest(groups[g].scale * inverse_or_zero(unit.scale), 0, 63);
    mins[g] = nearest(groups[g].min * inverse_or_zero(unit.min), 0, 63);
    const float scale = unit.scale * float(scales[g]), min = unit.min * float(mins[g]);
    for (size_t i = 32 * g; i < 32 * g + 32; ++i) {
      codes[i] = nearest((values[i] + min) * inverse_or_zero(scale), 0, 15);
    }
  }
  pack_pairs(scales, mins, block + 4);
  for (size_t pair = 0; pair < 4; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const int low = codes[64 * pair + i], high = codes[64 * pair + 32 + i];
      block[16 + 32 * pair + i] = static_cast<std::byte>(low | high << 4);
    }
  }
}

using SmallGroup = std::span<const float, 16>;

// The scale for codes -32..31 with the least squared error. For codes c the best scale is
// sum(wxc) / sum(wcc), and the error falls as sum(wxc)^2 / sum(wcc) grows.
float best_scale(SmallGroup values) {
  const float extreme = *std::max_element(
      values.begin(), values.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (std::abs(extreme) <= kTiny) return 0;
  const auto weights = weights_of(values);
  float best = extreme / -32;
  double most = 0;
  for (int i = -kTries; i <= kTries; ++i) {
    const float factor = -(32 + kTryStep * float(i)) / extreme;
    float wxc = 0, wcc = 0;
    for (size_t k = 0; k < 16; ++k) {
      const float code = code_of(values[k] * factor, -32, 31);
      wxc += weights[k] * values[k] * code;
      wcc += weights[k] * code * code;
    }
    if (wcc <= 0 || double{wxc} * wxc <= most * wcc) continue;
    most = double{wxc} * wxc / wcc;
    best = wxc / wcc;
  }
  return best;
}

void encode_one_q6_k(const float* values, std::byte* block) {
  std::array<float, 16> groups;
  for (size_t g = 0; g < 16; ++g) groups[g] = best_scale(SmallGroup(values + 16 * g, 16));
  const float extreme = *std::max_element(
      groups.begin(), groups.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float unit = stored_half(extreme / -128);
  std::memset(block, 0, 192);
  store_half(unit, block + 208);
  for (int g = 0; g < 16; ++g) {
    const int multiple = nearest(groups[static_cast<size_t>(g)] * inverse_or_zero(unit), -128, 127);
    block[192 + g] = static_cast<std::byte>(static_cast<int8_t>(multiple));
    const float factor = inverse_or_zero(unit * float(multiple));
    for (int i = 16 * g; i < 16 * g + 16; ++i) {
      const int code = nearest(values[i] * factor, -32, 31) + 32;
      const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
      block[64 * half + quarter % 2 * 32 + lane] |=
          static_cast<std::byte>((code & 15) << (quarter < 2 ? 0 : 4));
      block[128 + 32 * half + lane] |= static_cast<std::byte>(code >> 4 << (2 * quarter));
    }
  }
}

}  // namespace

void encode_q4_k(const float* values, int64_t count, std::byte* blocks) {
  for (; count > 0; --count, values += kBlock, blocks += 144) encode_one_q4_k(values, blocks);
}

void encode_q6_k(const float* values, int64_t count, std::byte* blocks) {
  for (; count > 0; --count, values += kBlock, blocks += 210) encode_one_q6_k(values, blocks);
}

}  // namespace foretoken
