#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

// The search for scales that leave the least squared error, which encoders of blocks share.
inline constexpr int kScaleTries = 6;          // on each side of the plain scale
inline constexpr float kScaleTryStep = 0.15F;  // of the number of codes
inline constexpr float kTinyScale = 1e-30F;

// 0 for what is too small to divide by.
inline float inverse_scale(float value) { return std::abs(value) > kTinyScale ? 1 / value : 0; }

// To the nearest integer within bounds, ties to even: adding 1.5 * 2^23 leaves no bits behind the
// point.
inline float nearest_code(float value, float least, float most) {
  return std::clamp(value, least, most) + 0x1.8p23F - 0x1.8p23F;
}

// What the error of an element counts: large weights matter more, small ones still do; and by the
// importance of its column, of which there are as many, or null.
template <size_t N>
std::array<float, N> error_weights(std::span<const float, N> values, const float* importance) {
  float squares = 0;
  for (const float value : values) squares += value * value;
  const float typical = std::sqrt(squares / N);
  std::array<float, N> weights;
  for (size_t i = 0; i < N; ++i) {
    weights[i] = importance != nullptr
                     ? importance[i] * std::sqrt(typical * typical + values[i] * values[i])
                     : typical + std::abs(values[i]);
    weights[i] += kTinyScale;
  }
  return weights;
}

// value = scale * code - min.
struct AffineScale {
  float scale = 0;
  float min = 0;
};

// Codes 0 .. most, and whether min may be below zero.
struct AffineCodes {
  float most = 15;
  bool any_min = false;
};

// For 32 values with these weights.
AffineScale best_affine_scale(std::span<const float, 32> values, std::span<const float, 32> weights,
                              const AffineCodes& codes);

// The scale for codes least .. most, where least is the one further from zero. For codes c the best
// scale is sum(wxc) / sum(wcc), and the error falls as sum(wxc)^2 / sum(wcc) grows.
float best_code_scale(std::span<const float> values, std::span<const float> weights, float least,
                      float most);

// The scale for codes that stand for the sixteen values of a table, which grow.
float best_table_scale(std::span<const float> values, std::span<const float> weights,
                       const int8_t* table);
// The code of the value next to `value`.
int nearest_in_table(float value, const int8_t* table);

}  // namespace foretoken
