#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec gemma2_layer(const ModelConfig& config, const LayerConfig& layer) {
  return sandwich_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
}

LayerSpec vaultgemma_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = gemma2_layer(config, layer);
  spec.mixer_post_norm = nullptr;
  spec.feed_forward_post_norm = nullptr;
  return spec;
}

constexpr const char* kGemma2Defaults =
    R"({"max_position_embeddings": 8192, "num_key_value_heads": 4, "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        "sliding_window": 4096, "sliding_window_pattern": 2, "tie_word_embeddings": true})";

}  // namespace

// Gemma Team 2024: norms before and after each block with weights 1 + w, embeddings times
// sqrt(hidden_size), soft caps on attention scores and logits, a tanh-GELU MLP, and every other
// layer, the first included, with a window. Scores are scaled by query_pre_attn_scalar.
constinit const Architecture kGemma2Architecture = {
    .name = "Gemma2ForCausalLM",
    .description = "Gemma 2",
    .defaults = kGemma2Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = gemma2_layer, .norms = {.offset = 1}, .scaled_embedding = true},
};

// Google 2025: Gemma 2 without the norms after blocks.
constinit const Architecture kVaultGemmaArchitecture = {
    .name = "VaultGemmaForCausalLM",
    .description = "VaultGemma",
    .defaults = kGemma2Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = vaultgemma_layer, .norms = {.offset = 1}, .scaled_embedding = true},
};

}  // namespace foretoken
