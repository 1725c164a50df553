#include <cmath>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec diff_llama_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.lambda_init = layer.lambda_init;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// Heads are pairs from here on, whose halves turn as heads of the file do.
Status read_diff_llama(const ConfigFields& fields, ModelConfig* config) {
  if (config->num_kv_heads % 2 != 0) {
    return fields.wrong("num_key_value_heads", "an even number, as heads come in pairs");
  }
  if (config->attention_bias) {
    return unsupported(fields.where() +
                       ": attention_bias is not supported beside differential attention; use a "
                       "model without it");
  }
  if (config->rope.full.rotary_dim != config->head_dim) {
    return fields.wrong("partial_rotary_factor", "1, as both halves of a pair turn whole");
  }
  config->num_kv_heads /= 2;
  config->head_dim *= 2;
  config->rope.full.rotary_dim *= 2;
  config->rope.full.copies = 2;
  for (size_t i = 0; i < config->layers.size(); ++i) {
    const double depth = -0.3 * static_cast<double>(i);
    config->layers[i].lambda_init = static_cast<float>(0.8 - 0.6 * std::exp(depth));
  }
  return {};
}

}  // namespace

// Ye et al. 2024 (differential attention) in Llama's blocks.
constinit const Architecture kDiffLlamaArchitecture = {
    .name = "DiffLlamaForCausalLM",
    .description = "DiffLlama",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})",
    .decoder = {.layer = diff_llama_layer},
    .read = read_diff_llama,
};

}  // namespace foretoken
