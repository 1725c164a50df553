#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// One more expert that all rows share, weighed by a gate of its own.
LayerSpec qwen2_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  ExpertsSpec experts = experts_of(config);
  experts.shared = "shared_expert.";
  experts.shared_gate = "shared_expert_gate";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

LayerSpec qwen3_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

LayerSpec qwen3_vl_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kFusedTurned;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

// Biases of q, k and v stand under a name of their own in newer files.
Status read_qwen2_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_flag("qkv_bias", &config->attention_bias));
  return read_mixture(fields, &config->experts, &config->layers);
}

Status read_qwen3_moe(const ConfigFields& fields, ModelConfig* config) {
  return read_mixture(fields, &config->experts, &config->layers);
}

Status read_qwen3_vl_moe(const ConfigFields& fields, ModelConfig* config) {
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

// A draft module, which is not read.
constexpr const char* kMellumModules[] = {"mtp."};

Status read_mellum(const ConfigFields& fields, ModelConfig* config) {
  config->num_mtp_modules = 0;
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

constexpr const char* kQwen3VlMoeVision[] = {"visual.", "model.visual."};

}  // namespace

// Qwen Team 2024: Qwen 2's blocks; a shared expert beside those that are chosen.
constinit const Architecture kQwen2MoeArchitecture = {
    .name = "Qwen2MoeForCausalLM",
    .description = "Qwen 1.5 MoE and Qwen 2 57B-A14B",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 16,
                    "sliding_window": 4096, "max_window_layers": 28, "attention_bias": true,
                    "attention_out_bias": false, "num_experts": 60, "num_experts_per_tok": 4,
                    "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.layer = qwen2_moe_layer},
    .read = read_qwen2_moe,
};

// Yang et al. 2025: Qwen 3's blocks.
constinit const Architecture kQwen3MoeArchitecture = {
    .name = "Qwen3MoeForCausalLM",
    .description = "Qwen 3 mixtures, 30B-A3B to 480B-A35B (Coder)",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 4,
                    "sliding_window": 4096, "max_window_layers": 28, "num_experts": 128,
                    "num_experts_per_tok": 8, "moe_intermediate_size": 768})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.layer = qwen3_moe_layer},
    .read = read_qwen3_moe,
};

// Qwen Team 2025: the same with vision, of which only the text part is read.
constinit const Architecture kQwen3VlMoeArchitecture = {
    .name = "Qwen3VLMoeForConditionalGeneration",
    .description = "Qwen 3 VL, mixtures; their text part",
    .defaults = R"({"max_position_embeddings": 128000, "num_key_value_heads": 16,
                    "rope_theta": 5000000.0, "num_experts": 60, "num_experts_per_tok": 4,
                    "moe_intermediate_size": 1408})",
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kQwen3VlMoeVision,
                .layer = qwen3_vl_moe_layer},
    .text_config = true,
    .read = read_qwen3_vl_moe,
};

// JetBrains 2026: the same where layers have a window, and positions of their own.
constinit const Architecture kMellumArchitecture = {
    .name = "MellumForCausalLM",
    .description = "Mellum 2 12B-A2.5B",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 128,
                    "sliding_window": 1024, "num_experts": 64, "num_experts_per_tok": 8,
                    "moe_intermediate_size": 896})",
    .decoder = {.ignored = kMellumModules, .layer = qwen3_moe_layer},
    .read = read_mellum,
};

}  // namespace foretoken
