#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec exaone_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.base = "attn.attention.";
  attention.o = "out_proj";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.gate = "c_fc_0";
  mlp.up = "c_fc_1";
  mlp.down = "c_proj";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  spec.feed_forward_norm = "ln_2";
  return spec;
}

Status translate_exaone(const ConfigFields& fields, nlohmann::json* json) {
  constexpr RenamedField kNames[] = {{"num_layers", "num_hidden_layers"},
                                     {"activation_function", "hidden_act"},
                                     {"layer_norm_epsilon", "rms_norm_eps"}};
  take_renamed(fields, kNames, json);
  return {};
}

}  // namespace

// LG AI Research 2024: Llama's blocks under names of their own.
constinit const Architecture kExaoneArchitecture = {
    .name = "ExaoneForCausalLM",
    .description = "EXAONE 3.0, 3.5 and Deep",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .layer = exaone_layer},
    .translate = translate_exaone,
};

}  // namespace foretoken
