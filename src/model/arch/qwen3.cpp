#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec qwen3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

}  // namespace

// Yang et al. 2025, the dense models: each head of q and k is normed before it turns, there are no
// biases unless attention_bias asks for them, and heads have a size of their own.
constinit const Architecture kQwen3Architecture = {
    .name = "Qwen3ForCausalLM",
    .description = "Qwen 3, dense",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 32, "head_dim": 128,
                    "sliding_window": 4096, "max_window_layers": 28})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.layer = qwen3_layer},
};

}  // namespace foretoken
