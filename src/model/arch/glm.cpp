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

// Parts that read images.
constexpr const char* kGlmVision[] = {"visual.", "model.visual."};

constexpr DecoderTraits kGlm4vDecoder = {
    .places = {{{"model.language_model.", "lm_head.weight"}, {"model.", "lm_head.weight"}}},
    .ignored = kGlmVision,
    .layer = glm4_layer};

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

// GLM-V Team 2025: GLM 4 with vision, of which only the text part is read. Positions of text are
// the same in all sections of mrope.
constinit const Architecture kGlm4vArchitecture = {
    .name = "Glm4vForConditionalGeneration",
    .description = "GLM 4.1V and 4.6V Flash; their text part",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 2,
                    "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "attention_bias": true,
                    "attention_out_bias": false})",
    .decoder = kGlm4vDecoder,
    .text_config = true,
};

constinit const Architecture kGlm46vArchitecture = {
    .name = "Glm46VForConditionalGeneration",
    .description = "GLM 4.6V Flash, newer exports; its text part",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 2,
                    "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "attention_bias": true,
                    "attention_out_bias": false})",
    .decoder = kGlm4vDecoder,
    .text_config = true,
};

}  // namespace foretoken
