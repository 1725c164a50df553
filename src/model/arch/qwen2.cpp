#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec qwen2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qkv_bias = true;
  attention.o_bias = false;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

}  // namespace

// Yang et al. 2024: Llama's blocks with biases of q, k and v; with use_sliding_window the layers
// from max_window_layers on see a window.
constinit const Architecture kQwen2Architecture = {
    .name = "Qwen2ForCausalLM",
    .description = "Qwen 2 and 2.5",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 32,
                    "sliding_window": 4096, "max_window_layers": 28})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.layer = qwen2_layer},
};

}  // namespace foretoken
