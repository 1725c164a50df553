#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

constexpr const char* kGlmDefaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
        "rms_norm_eps": 1.5625e-07, "partial_rotary_factor": 0.5, "attention_bias": true,
        "attention_out_bias": false})";

// The first half of a head turns, its pairs side by side; gate and up are one tensor.
LayerSpec glm_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  return pre_norm_layer(attention, mlp);
}

LayerSpec glm4_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = glm_layer(config, layer);
  spec.mixer_post_norm = "post_self_attn_layernorm";
  spec.feed_forward_post_norm = "post_mlp_layernorm";
  return spec;
}

}  // namespace

// Team GLM 2024, as transformers names them.
constinit const Architecture kGlmArchitecture = {
    .name = "GlmForCausalLM",
    .description = "GLM 4 9B, in transformers' form",
    .defaults = kGlmDefaults,
    .decoder = {.layer = glm_layer},
};

// The same with norms behind both blocks.
constinit const Architecture kGlm4Architecture = {
    .name = "Glm4ForCausalLM",
    .description = "GLM 4 0414 and Z1, dense",
    .defaults = kGlmDefaults,
    .decoder = {.layer = glm4_layer},
};

}  // namespace foretoken
