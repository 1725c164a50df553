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
  FT_RETURN_IF_ERROR(take_gpt2_names(fields, json));
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

// Norms are of the residual with what a part adds, and there is none behind the last layer.
LayerSpec gpt1_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec before = gpt2_layer(config, layer);
  LayerSpec spec = post_norm_layer(before.mixer, before.feed_forward);
  spec.mixer_post_norm = "ln_1";
  spec.feed_forward_post_norm = "ln_2";
  spec.norms_sums = true;
  return spec;
}

// What files call gelu is its approximation by tanh.
Status translate_gpt1(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(translate_gpt2(fields, json));
  const Json* activation = fields.find("afn");
  if (activation != nullptr) {
    (*json)["hidden_act"] = *activation == "gelu" ? Json("gelu_new") : *activation;
  }
  return {};
}

Status read_gpt1(const ConfigFields& fields, ModelConfig* config) {
  config->norms_sums = true;
  config->last_norm = false;
  return read_gpt2(fields, config);
}

// The table has two rows before that of position 0.
constexpr int32_t kFirstPosition = 2;

LayerSpec opt_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.o = "out_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.base = "";
  mlp.up = "fc1";
  mlp.down = "fc2";
  if (!config.norms_sums) {
    LayerSpec spec = pre_norm_layer(attention, mlp);
    spec.mixer_norm = "self_attn_layer_norm";
    spec.feed_forward_norm = "final_layer_norm";
    return spec;
  }
  LayerSpec spec = post_norm_layer(attention, mlp);
  spec.mixer_post_norm = "self_attn_layer_norm";
  spec.feed_forward_post_norm = "final_layer_norm";
  spec.norms_sums = true;
  return spec;
}

Status translate_opt(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"ffn_dim", "intermediate_size"},
                                     {"activation_function", "hidden_act"},
                                     {"enable_bias", "attention_bias"}};
  take_renamed(fields, kNames, json);
  (*json)["mlp_bias"] = (*json)["attention_bias"];
  return {};
}

// Embeddings that are narrower than the layers are widened while they are read
// (model/files/checkpoint.h).
Status read_opt(const ConfigFields& fields, ModelConfig* config) {
  bool before = true, removed = false, weighted = true;
  int32_t width = config->hidden_size;
  FT_RETURN_IF_ERROR(fields.read_flag("do_layer_norm_before", &before));
  FT_RETURN_IF_ERROR(fields.read_flag("_remove_final_layer_norm", &removed));
  FT_RETURN_IF_ERROR(fields.read_flag("layer_norm_elementwise_affine", &weighted));
  FT_RETURN_IF_ERROR(fields.read_count("word_embed_proj_dim", &width));
  if (!weighted) {
    return unsupported(fields.where() +
                       ": layer_norm_elementwise_affine false is not supported; use a model whose "
                       "norms have weights");
  }
  config->norms_sums = !before;
  config->last_norm = before && !removed;
  if (width != config->hidden_size) config->tie_word_embeddings = false;
  config->learned_positions = config->max_position_embeddings + kFirstPosition;
  config->first_position_row = kFirstPosition;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

// MLX's tools turn matrices back.
void take_mlx_gpt2(Json* json) { (*json)["plain_matrices"] = true; }

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
    .take_mlx = take_mlx_gpt2,
    .read = read_gpt2,
};

// Radford et al. 2018: the same with norms behind both parts.
constinit const Architecture kGpt1Architecture = {
    .name = "OpenAIGPTLMHeadModel",
    .description = "GPT-1",
    .defaults = R"({"vocab_size": 40478, "n_embd": 768, "n_layer": 12, "n_head": 12,
                    "n_positions": 512, "afn": "gelu", "layer_norm_epsilon": 1e-5,
                    "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "tokens_embed",
                .layers = "h.",
                .last_norm = "ln_f",
                .positions = "positions_embed",
                .transposed = true,
                .layer = gpt1_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gpt1,
    .take_mlx = take_mlx_gpt2,
    .read = read_gpt1,
};

// Zhang et al. 2022: GPT-2's blocks with ReLU, and positions that begin in the third row of their
// table. OPT-350m alone has its norms behind what blocks add, and narrower embeddings.
constinit const Architecture kOptArchitecture = {
    .name = "OPTForCausalLM",
    .description = "OPT",
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
