#include "gguf/blocks/block_search.h"

namespace foretoken {
namespace {

// An affine map and the squared error that it leaves.
struct AffineFit {
  AffineScale affine;
  double error;
};

// The least squared error for the codes that `affine` gives.
AffineFit fitted(std::span<const float, 32> values, std::span<const float, 32> weights,
                 AffineScale affine, const AffineCodes& codes) {
  const float factor = inverse_scale(affine.scale), shift = affine.min * factor;
  float w = 0, wx = 0, wxx = 0, wc = 0, wcc = 0, wcx = 0;
  for (size_t i = 0; i < 32; ++i) {
    const float code = nearest_code(values[i] * factor + shift, 0, codes.most);
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
    const AffineScale found{static_cast<float>(scale), static_cast<float>(min)};
    if (min >= 0 || codes.any_min) return {found, wxx - scale * wcx + min * wx};
  }
  const float constant = codes.any_min ? -wx / w : std::max(-wx / w, 0.0F);
  if (wcc <= 0) return {{0, constant}, wxx - double{wx} * wx / w};
  const double scale = double{wcx} / wcc;
  return {{static_cast<float>(scale), 0}, wxx - scale * wcx};
}

float extreme_of(std::span<const float> values) {
  return *std::max_element(values.begin(), values.end(),
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// The best of several scales: `code` gives what a value times a factor becomes.
class ScaleSearch {
 public:
  ScaleSearch(std::span<const float> values, std::span<const float> weights)
      : values_(values), weights_(weights) {}

  template <class Code>
  void try_factor(float factor, Code&& code) {
    float wxc = 0, wcc = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const float c = code(values_[i] * factor);
      wxc += weights_[i] * values_[i] * c;
      wcc += weights_[i] * c * c;
    }
    if (wcc <= 0 || double{wxc} * wxc <= max_ * wcc) return;
    max_ = double{wxc} * wxc / wcc;
    best_ = wxc / wcc;
  }
  float best_or(float otherwise) const { return max_ > 0 ? best_ : otherwise; }

 private:
  std::span<const float> values_, weights_;
  double max_ = 0;
  float best_ = 0;
};

}  // namespace

AffineScale best_affine_scale(std::span<const float, 32> values, std::span<const float, 32> weights,
                              const AffineCodes& codes) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float min = codes.any_min ? -*low : std::max(-*low, 0.0F);
  const float range = (codes.any_min ? *high : std::max(*high, 0.0F)) + min;
  if (range <= kTinyScale) return {0, min};
  AffineFit best = fitted(values, weights, {range / codes.most, min}, codes);
  for (int i = -kScaleTries; i <= kScaleTries; ++i) {
    const float num_codes = codes.most + kScaleTryStep * static_cast<float>(i);
    const AffineFit tried = fitted(values, weights, {range / num_codes, min}, codes);
    if (tried.error < best.error && tried.affine.scale > 0) best = tried;
  }
  return best.affine;
}

float best_code_scale(std::span<const float> values, std::span<const float> weights, float least,
                      float most) {
  const float extreme = extreme_of(values);
  if (std::abs(extreme) <= kTinyScale) return 0;
  ScaleSearch search(values, weights);
  for (int i = -kScaleTries; i <= kScaleTries; ++i) {
    const float factor = (least - kScaleTryStep * static_cast<float>(i)) / extreme;
    search.try_factor(factor, [&](float value) { return nearest_code(value, least, most); });
  }
  return search.best_or(extreme / least);
}

int nearest_in_table(float value, const int8_t* table) {
  int code = 0;
  while (code < 15 &&
         value > (static_cast<float>(table[code]) + static_cast<float>(table[code + 1])) / 2) {
    ++code;
  }
  return code;
}

float best_table_scale(std::span<const float> values, std::span<const float> weights,
                       const int8_t* table) {
  constexpr int kTries = 7;
  constexpr float kStep = 4;  // of the table's values
  const float extreme = extreme_of(values);
  if (std::abs(extreme) <= kTinyScale) return 0;
  ScaleSearch search(values, weights);
  for (const int8_t end : {table[0], table[15]}) {
    for (int i = -kTries; i <= kTries; ++i) {
      const float factor = (static_cast<float>(end) + kStep * static_cast<float>(i)) / extreme;
      search.try_factor(factor, [&](float value) {
        return static_cast<float>(table[nearest_in_table(value, table)]);
      });
    }
  }
  return search.best_or(extreme / static_cast<float>(table[0]));
}

}  // namespace foretoken
