#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec gpt2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = "attn.";
  attention.qkv = "c_attn";
  attention.o = "c_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "c_fc";
  mlp.down = "c_proj";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  spec.feed_forward_norm = "ln_2";
  return spec;
}

Status translate_gpt2(const ConfigFields& fields, Json* json) {
  constexpr const char* kNames[][2] = {{"n_embd", "hidden_size"},
                                       {"n_layer", "num_hidden_layers"},
                                       {"n_head", "num_attention_heads"},
                                       {"n_inner", "intermediate_size"},
                                       {"n_positions", "max_position_embeddings"},
                                       {"activation_function", "hidden_act"}};
  for (const auto& [own, common] : kNames) {
    if (const Json* value = fields.find(own)) (*json)[common] = *value;
  }
  int32_t hidden = 0;
  FT_RETURN_IF_ERROR(fields.read_count("n_embd", &hidden));
  if (fields.find("n_inner") == nullptr) (*json)["intermediate_size"] = 4 * hidden;
  (*json)["attention_bias"] = true;
  (*json)["mlp_bias"] = true;
  return {};
}

Status read_gpt2(const ConfigFields& fields, ModelConfig* config) {
  bool scales = true, by_layer = false;
  FT_RETURN_IF_ERROR(fields.read_flag("scale_attn_weights", &scales));
  FT_RETURN_IF_ERROR(fields.read_flag("scale_attn_by_inverse_layer_idx", &by_layer));
  if (by_layer) {
    return unsupported(fields.where() +
                       ": scale_attn_by_inverse_layer_idx is not supported; use a model whose "
                       "layers scale alike");
  }
  if (!scales) config->attention_scale = 1;
  config->learned_positions = config->max_position_embeddings;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

}  // namespace

// Radford et al. 2019: positions are a table, norms have biases, and so has every matrix, which
// lies in the file with its inputs as rows.
constinit const Architecture kGpt2Architecture = {
    .name = "GPT2LMHeadModel",
    .description = "GPT-2",
    .defaults = R"({"vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
                    "n_positions": 1024, "activation_function": "gelu_new",
                    "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .positions = "wpe",
                .transposed = true,
                .layer = gpt2_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gpt2,
    .read = read_gpt2,
};

}  // namespace foretoken
