#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec kolibri_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = experts_of(config);
  experts.base = "";
  experts.router = "mlp.gate";
  experts.correction = "moe.router.expert_bias";
  experts.experts = "mlp.experts.";
  experts.shared = "mlp.shared_experts.";
  LayerSpec spec = pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
  spec.mixer_post_norm = "post_attn_norm";
  spec.feed_forward_post_norm = "post_ffn_norm";
  return spec;
}

Status read_kolibri(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoidOfChosen;
  experts.correction = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Aleph Alpha 2026: norms around both parts, four layers with a window and rotary positions to one
// with neither, and experts chosen by corrected logits that their own sigmoids weigh.
constinit const Architecture kKolibri1Architecture = {
    .name = "Kolibri1ForCausalLM",
    .description = "Kolibri 1",
    .defaults = R"({"max_position_embeddings": 262144, "num_key_value_heads": 4, "head_dim": 128,
                    "intermediate_size": 512, "sliding_window": 513,
                    "sliding_window_pattern": 5, "num_experts": 384,
                    "num_experts_per_tok": 6, "moe_intermediate_size": 512,
                    "shared_expert_intermediate_size": 512})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = kolibri_layer},
    .only_windows_turn = true,
    .read = read_kolibri,
};

}  // namespace foretoken
