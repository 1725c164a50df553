#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// More than layers of any model; the numbers of a short file can ask for billions.
constexpr size_t kMaxKinds = 1 << 16;

LayerSpec gpt_neo_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.base = "attn.attention.";
  attention.o = "out_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "c_fc";
  mlp.down = "c_proj";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  spec.feed_forward_norm = "ln_2";
  return spec;
}

// [[["global", "local"], 12]]: kinds of layers, and how often they follow one another.
Status add_layer_types(const ConfigFields& fields, Json* json) {
  const Json* groups = fields.find("attention_types");
  const auto is_group = [](const Json& group) {
    return group.is_array() && group.size() == 2 && group[0].is_array() &&
           group[1].is_number_integer() && group[1] >= 0 && group[1] <= 1 << 12;
  };
  if (groups == nullptr || !groups->is_array() || !std::ranges::all_of(*groups, is_group)) {
    return fields.wrong("attention_types", "a list of kinds and how often they follow");
  }
  Json types = Json::array();
  for (const Json& group : *groups) {
    for (int64_t i = 0; i < group[1].get<int64_t>(); ++i) {
      if (types.size() > kMaxKinds) return fields.wrong("attention_types", "shorter");
      for (const Json& kind : group[0]) {
        types.push_back(kind == "local" ? "sliding_attention" : "full_attention");
      }
    }
  }
  (*json)["layer_types"] = std::move(types);
  return {};
}

Status translate_gpt_neo(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"num_layers", "num_hidden_layers"},
                                     {"num_heads", "num_attention_heads"},
                                     {"window_size", "sliding_window"},
                                     {"activation_function", "hidden_act"}};
  take_renamed(fields, kNames, json);
  int32_t hidden = 0;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  if (fields.find("intermediate_size") == nullptr) (*json)["intermediate_size"] = 4 * hidden;
  (*json)["attention_out_bias"] = true;
  (*json)["mlp_bias"] = true;
  return add_layer_types(fields, json);
}

Status read_gpt_neo(const ConfigFields&, ModelConfig* config) {
  config->attention_scale = 1;
  config->learned_positions = config->max_position_embeddings;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

}  // namespace

// Black et al. 2021: GPT-2's blocks, every other one with a window; scores are not scaled.
constinit const Architecture kGptNeoArchitecture = {
    .name = "GPTNeoForCausalLM",
    .description = "GPT-Neo, TinyStories",
    .defaults = R"({"vocab_size": 50257, "hidden_size": 2048, "num_layers": 24, "num_heads": 16,
                    "max_position_embeddings": 2048, "window_size": 256,
                    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
                    "attention_types": [[["global", "local"], 12]],
                    "tie_word_embeddings": true})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .positions = "wpe",
                .layer = gpt_neo_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gpt_neo,
    .read = read_gpt_neo,
};

}  // namespace foretoken
