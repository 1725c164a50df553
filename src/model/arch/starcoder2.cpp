#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec starcoder2_layer(const ModelConfig& config, const LayerConfig& layer) {
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "c_fc";
  mlp.down = "c_proj";
  return pre_norm_layer(gqa_of(config, layer), mlp);
}

Status translate_starcoder2(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("use_bias")) {
    (*json)["attention_bias"] = *bias;
    (*json)["mlp_bias"] = *bias;
  }
  return {};
}

}  // namespace

// Lozhkov et al. 2024: layer norms, biases everywhere, and an MLP without a gate.
constinit const Architecture kStarcoder2Architecture = {
    .name = "Starcoder2ForCausalLM",
    .description = "StarCoder 2",
    .defaults = R"({"max_position_embeddings": 4096, "num_key_value_heads": 2,
                    "norm_epsilon": 1e-5, "hidden_act": "gelu_pytorch_tanh", "use_bias": true,
                    "tie_word_embeddings": true})",
    .default_end = 50256,
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = starcoder2_layer, .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_starcoder2,
};

}  // namespace foretoken
