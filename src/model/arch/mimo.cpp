#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec mimo_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.o_bias = false;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// The draft module in the same files; draft_head.h reads it.
constexpr const char* kMimoModules[] = {"model.mtp_layers."};

}  // namespace

// Xiaomi 2025: Qwen 2's blocks, and a module that predicts the token after next.
constinit const Architecture kMimoArchitecture = {
    .name = "MiMoForCausalLM",
    .description = "MiMo 7B, with its MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 32768, "attention_bias": true,
                    "max_window_layers": 28})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.ignored = kMimoModules, .layer = mimo_layer},
    .mtp = {.layers = "mtp_layers.",
            .counts_on = false,
            .projection = "input_proj",
            .embed_norm = "token_layernorm",
            .state_norm = "hidden_layernorm",
            .output_norm = "final_layernorm",
            .state_first = true,
            .chains_normed = true},
};

}  // namespace foretoken
