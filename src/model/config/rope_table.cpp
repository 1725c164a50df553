#include "model/config/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foretoken {
namespace {

// All in float and in this order, as transformers computes it: a frequency that is off by a
// rounding is seen in the logits of far positions.
std::vector<float> powers(double theta, int32_t rotary_dim) {
  std::vector<float> powers(static_cast<size_t>(rotary_dim / 2));
  for (size_t i = 0; i < powers.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    powers[i] = std::pow(static_cast<float>(theta), exponent);
  }
  return powers;
}

double dynamic_theta(const RopeConfig& config, int32_t max_model_len) {
  const double length = std::max(max_model_len, config.original_context);
  const double stretch = config.factor * length / config.original_context - (config.factor - 1);
  const double dim = config.rotary_dim;
  return config.theta * std::pow(stretch, dim / (dim - 2));
}

// Waves longer than the original context are slowed down, short ones kept, those between mixed.
void apply_llama3(const RopeConfig& config, std::vector<float>* inv_freq) {
  const auto original = static_cast<float>(config.original_context);
  const auto low = static_cast<float>(config.low_freq_factor);
  const auto high = static_cast<float>(config.high_freq_factor);
  const auto factor = static_cast<float>(config.factor);
  for (float& freq : *inv_freq) {
    const float wave = static_cast<float>(2 * std::numbers::pi) / freq;
    if (wave > original / low) {
      freq /= factor;
    } else if (high > low && wave >= original / high) {
      const float smooth = (original / wave - low) / (high - low);
      freq = (1 - smooth) * freq / factor + smooth * freq;
    }
  }
}

// Index of the frequency that turns `rotations` times within the original context.
double yarn_index(const RopeConfig& config, double rotations) {
  return config.rotary_dim *
         std::log(config.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(config.theta));
}

std::vector<float> yarn_frequencies(const RopeConfig& config) {
  double low = yarn_index(config, config.beta_fast), high = yarn_index(config, config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, config.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  std::vector<float> inv_freq = powers(config.theta, config.rotary_dim);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float power = inv_freq[i];
    const float ramp =
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1 - std::clamp(ramp, 0.0f, 1.0f);
    const float slowed = 1 / (static_cast<float>(config.factor) * power);
    inv_freq[i] = slowed * (1 - kept) + 1 / power * kept;
  }
  return inv_freq;
}

RopeTable make_copies(const RopeConfig& config, int32_t max_model_len) {
  RopeConfig one = config;
  one.copies = 1;
  one.rotary_dim = config.rotary_dim / config.copies;
  const RopeTable of_one = make_rope_table(one, max_model_len);
  RopeTable table{.inv_freq = {}, .scaling = of_one.scaling};
  for (int32_t i = 0; i < config.copies; ++i) {
    table.inv_freq.insert(table.inv_freq.end(), of_one.inv_freq.begin(), of_one.inv_freq.end());
  }
  return table;
}

}  // namespace

RopeTable make_rope_table(const RopeConfig& config, int32_t max_model_len) {
  if (config.copies > 1) return make_copies(config, max_model_len);
  RopeTable table;
  table.scaling = static_cast<float>(config.attention_factor);
  if (config.type == RopeType::kYarn) {
    table.inv_freq = yarn_frequencies(config);
    return table;
  }
  const double theta =
      config.type == RopeType::kDynamic ? dynamic_theta(config, max_model_len) : config.theta;
  table.inv_freq = powers(theta, config.rotary_dim);
  if (config.type == RopeType::kLongrope) {
    const auto& factors =
        max_model_len > config.original_context ? config.long_factor : config.short_factor;
    const double scale =
        max_model_len > config.original_context ? config.long_scale : config.short_scale;
    if (scale > 0) table.scaling = static_cast<float>(scale);
    for (size_t i = 0; i < table.inv_freq.size(); ++i) {
      table.inv_freq[i] *= static_cast<float>(factors[i]);
    }
  }
  for (float& value : table.inv_freq) value = 1 / value;
  if (config.type == RopeType::kProportional) {
    std::fill(table.inv_freq.begin() + config.turning_pairs, table.inv_freq.end(), 0.0f);
  }
  if (config.type == RopeType::kLinear || config.type == RopeType::kProportional) {
    for (float& value : table.inv_freq) value /= static_cast<float>(config.factor);
  }
  if (config.type == RopeType::kLlama3) apply_llama3(config, &table.inv_freq);
  return table;
}

std::string long_form_note(const RopeConfig& config, int32_t max_model_len) {
  const bool is_longrope = config.type == RopeType::kLongrope;
  const bool is_same = is_longrope && config.short_factor == config.long_factor &&
                       config.short_scale == config.long_scale;
  const bool depends = (is_longrope && !is_same) || config.type == RopeType::kDynamic;
  if (!depends || max_model_len <= config.original_context) return "";
  const std::string limit = std::to_string(config.original_context);
  return "all texts have the positions for " + std::to_string(max_model_len) + " tokens (" +
         (is_longrope ? "longrope" : "dynamic") +
         ", as in vLLM), where transformers has others for texts of up to " + limit +
         "; --max-model-len " + limit + " serves those as it does";
}

}  // namespace foretoken
