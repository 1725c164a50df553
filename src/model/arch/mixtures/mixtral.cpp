#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec mixtral_layer(const ModelConfig& config, const LayerConfig& layer) {
  const ExpertsSpec experts = mixtral_experts_of(config);
  return pre_norm_layer(gqa_of(config, layer), experts_or_mlp(config, layer, experts));
}

Status read_mixtral(const ConfigFields& fields, ModelConfig* config) {
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Jiang et al. 2024: Mistral's blocks with a mixture in each.
constinit const Architecture kMixtralArchitecture = {
    .name = "MixtralForCausalLM",
    .description = "Mixtral 8x7B and 8x22B",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8,
                    "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "num_local_experts": 8,
                    "num_experts_per_tok": 2})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = mixtral_layer},
    .read = read_mixtral,
};

}  // namespace foretoken
