#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The table has two rows before that of position 0.
constexpr int32_t kFirstPosition = 2;

LayerSpec opt_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.o = "out_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.base = "";
  mlp.up = "fc1";
  mlp.down = "fc2";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "self_attn_layer_norm";
  spec.feed_forward_norm = "final_layer_norm";
  return spec;
}

Status translate_opt(const ConfigFields& fields, Json* json) {
  constexpr const char* kNames[][2] = {{"ffn_dim", "intermediate_size"},
                                       {"activation_function", "hidden_act"},
                                       {"enable_bias", "attention_bias"}};
  for (const auto& [own, common] : kNames) {
    if (const Json* value = fields.find(own)) (*json)[common] = *value;
  }
  (*json)["mlp_bias"] = (*json)["attention_bias"];
  return {};
}

// OPT-350m alone has norms behind its blocks, and embeddings of another width.
Status check_opt(const ConfigFields& fields, int32_t hidden) {
  bool before = true, removed = false, weighted = true;
  int32_t width = hidden;
  FT_RETURN_IF_ERROR(fields.read_flag("do_layer_norm_before", &before));
  FT_RETURN_IF_ERROR(fields.read_flag("_remove_final_layer_norm", &removed));
  FT_RETURN_IF_ERROR(fields.read_flag("layer_norm_elementwise_affine", &weighted));
  FT_RETURN_IF_ERROR(fields.read_count("word_embed_proj_dim", &width));
  const char* field = !before           ? "do_layer_norm_before false"
                      : removed         ? "_remove_final_layer_norm"
                      : !weighted       ? "layer_norm_elementwise_affine false"
                      : width != hidden ? "a word_embed_proj_dim other than hidden_size"
                                        : nullptr;
  if (field == nullptr) return {};
  return unsupported(fields.where() + ": " + field +
                     " is not supported; use another size of OPT than 350m");
}

Status read_opt(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_opt(fields, config->hidden_size));
  config->learned_positions = config->max_position_embeddings + kFirstPosition;
  config->first_position_row = kFirstPosition;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

}  // namespace

// Zhang et al. 2022: GPT-2's blocks with ReLU, and positions that begin in the third row of their
// table.
constinit const Architecture kOptArchitecture = {
    .name = "OPTForCausalLM",
    .description = "OPT, but 350m",
    .defaults = R"({"vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12,
                    "num_attention_heads": 12, "ffn_dim": 3072, "max_position_embeddings": 2048,
                    "activation_function": "relu", "enable_bias": true, "layer_norm_eps": 1e-5,
                    "tie_word_embeddings": true})",
    .decoder = {.places = {{{"model.decoder.", "lm_head.weight"}, {"decoder.", "lm_head.weight"}}},
                .last_norm = "final_layer_norm",
                .layer = opt_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_opt,
    .read = read_opt,
};

}  // namespace foretoken
