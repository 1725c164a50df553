#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec vaultgemma_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = pre_norm_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
  spec.feed_forward_norm = "pre_feedforward_layernorm";
  return spec;
}

}  // namespace

// Google 2025: Gemma 2 without the norms after blocks.
constinit const Architecture kVaultGemmaArchitecture = {
    .name = "VaultGemmaForCausalLM",
    .description = "VaultGemma",
    .defaults = R"({"max_position_embeddings": 8192, "num_key_value_heads": 4, "head_dim": 256,
                    "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256,
                    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                    "sliding_window": 4096, "sliding_window_pattern": 2,
                    "tie_word_embeddings": true})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = vaultgemma_layer, .norms = {.offset = 1}, .scaled_embedding = true},
};

}  // namespace foretoken
