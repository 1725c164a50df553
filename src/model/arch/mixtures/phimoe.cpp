#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec phimoe_layer(const ModelConfig& config, const LayerConfig& layer) {
  const ExpertsSpec experts = mixtral_experts_of(config);
  return pre_norm_layer(gqa_of(config, layer), experts_or_mlp(config, layer, experts));
}

Status read_phimoe(const ConfigFields& fields, ModelConfig* config) {
  config->experts.score = ExpertScore::kSparseMixer;
  config->experts.jitter = 0.01f;
  FT_RETURN_IF_ERROR(fields.read_flag("lm_head_bias", &config->head_bias));
  return read_mixture(fields, &config->experts, &config->layers);
}

constexpr const char* kPhimoeDefaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0, "num_local_experts": 16, "num_experts_per_tok": 2})";

}  // namespace

// Abdin et al. 2024: layer norms with biases, and a mixture in each block whose two experts are
// weighed one after the other.
constinit const Architecture kPhimoeArchitecture = {
    .name = "PhimoeForCausalLM",
    .description = "Phi-3.5 MoE, as transformers names it",
    .defaults = kPhimoeDefaults,
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = phimoe_layer, .norms = {.kind = NormKind::kLayer, .bias = true}},
    .read = read_phimoe,
};

// The same, as it is published.
constinit const Architecture kPhiMoeArchitecture = {
    .name = "PhiMoEForCausalLM",
    .description = "Phi-3.5 MoE",
    .defaults = kPhimoeDefaults,
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = phimoe_layer, .norms = {.kind = NormKind::kLayer, .bias = true}},
    .read = read_phimoe,
};

}  // namespace foretoken
