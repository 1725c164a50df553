#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec ernie4_5_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

Status translate_ernie4_5(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("use_bias")) {
    (*json)["attention_bias"] = *bias;
    (*json)["mlp_bias"] = *bias;
  }
  return {};
}

}  // namespace

// Baidu 2025, the dense models: Llama's blocks, where pairs of a head lie side by side and use_bias
// asks for biases everywhere.
constinit const Architecture kErnie4_5Architecture = {
    .name = "Ernie4_5ForCausalLM",
    .description = "ERNIE 4.5, dense",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
                    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true})",
    .decoder = {.layer = ernie4_5_layer},
    .translate = translate_ernie4_5,
};

}  // namespace foretoken
