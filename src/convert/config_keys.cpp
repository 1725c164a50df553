#include "convert/config_keys.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foretoken {
namespace {

// The frequencies of a YaRN that has no parameters of its own.
bool is_plain_yarn(const RopeConfig& rope) {
  const double attention = rope.factor <= 1 ? 1 : 0.1 * std::log(rope.factor) + 1;
  return rope.beta_fast == 32 && rope.beta_slow == 1 && rope.truncate &&
         std::abs(rope.attention_factor - attention) < 1e-9;
}

Status check_rope(const ModelConfig& config, const std::string& where) {
  const RopeConfig& rope = config.rope.full;
  const bool known = rope.type == RopeType::kDefault || rope.type == RopeType::kLinear ||
                     rope.type == RopeType::kLlama3 ||
                     (rope.type == RopeType::kYarn && is_plain_yarn(rope));
  if (known && rope.rotary_dim == config.head_dim && !config.rope.windowed) return {};
  return unsupported(
      where +
      ": GGUF files are written for rotary embeddings of whole heads: plain, linear, "
      "llama3 and yarn with its usual parameters; use the folder as it is");
}

Status check_model(const ModelConfig& config, const std::string& where) {
  const bool windows =
      std::any_of(config.layers.begin(), config.layers.end(), [&](const LayerConfig& layer) {
        return (layer.window > 0 && layer.window < config.max_context) || !layer.rope;
      });
  if (windows) {
    return unsupported(where +
                       ": layers with a sliding window or without positions are lost in a GGUF "
                       "file; use the folder as it is, or keep the context within the window with "
                       "max_position_embeddings and sliding_window null");
  }
  const bool plain = config.activation == Activation::kSilu && !config.mlp_bias &&
                     config.attention_softcap == 0 && config.logits_softcap == 0 &&
                     config.num_mtp_modules == 0;
  if (plain) return {};
  return unsupported(where +
                     ": GGUF files are written for models with SiLU, without biases of the MLP, "
                     "soft caps and MTP modules; use the folder as it is");
}

uint32_t number(int32_t value) { return static_cast<uint32_t>(value); }

void add_rope(const RopeConfig& rope, const std::string& prefix, GgufKeys& keys) {
  keys.add_u32(prefix + "rope.dimension_count", number(rope.rotary_dim));
  keys.add_f32(prefix + "rope.freq_base", static_cast<float>(rope.theta));
  if (rope.type != RopeType::kLinear && rope.type != RopeType::kYarn) return;
  const bool linear = rope.type == RopeType::kLinear;
  keys.add_text(prefix + "rope.scaling.type", linear ? "linear" : "yarn");
  keys.add_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
  if (linear) return;
  keys.add_u32(prefix + "rope.scaling.original_context_length", number(rope.original_context));
}

}  // namespace

Status add_config_keys(const ModelConfig& config, const GgufArchitecture& architecture,
                       const std::string& where, GgufKeys& keys) {
  FT_RETURN_IF_ERROR(check_rope(config, where));
  FT_RETURN_IF_ERROR(check_model(config, where));
  const std::string prefix = std::string(architecture.name) + ".";
  keys.add_text("general.architecture", architecture.name);
  keys.add_u32(prefix + "vocab_size", number(config.vocab_size));
  keys.add_u32(prefix + "context_length", number(config.max_position_embeddings));
  keys.add_u32(prefix + "embedding_length", number(config.hidden_size));
  keys.add_u32(prefix + "block_count", number(config.num_layers));
  keys.add_u32(prefix + "feed_forward_length", number(config.intermediate_size));
  keys.add_u32(prefix + "attention.head_count", number(config.num_heads));
  keys.add_u32(prefix + "attention.head_count_kv", number(config.num_kv_heads));
  keys.add_u32(prefix + "attention.key_length", number(config.head_dim));
  keys.add_u32(prefix + "attention.value_length", number(config.head_dim));
  keys.add_f32(prefix + "attention.layer_norm_rms_epsilon", config.rms_norm_eps);
  add_rope(config.rope.full, prefix, keys);
  return {};
}

std::vector<float> rope_divisors(const RopeConfig& rope) {
  std::vector<float> divisors;
  if (rope.type != RopeType::kLlama3) return divisors;
  // Wave lengths above original_context / low_freq_factor are stretched, those below
  // original_context / high_freq_factor stay, and frequencies between blend both.
  for (int32_t i = 0; i < rope.rotary_dim; i += 2) {
    const double turns = rope.original_context / (2 * std::numbers::pi) /
                         std::pow(rope.theta, double(i) / rope.rotary_dim);
    const double kept = std::clamp(
        (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / rope.factor + kept)));
  }
  return divisors;
}

}  // namespace foretoken
