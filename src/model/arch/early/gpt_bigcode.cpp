#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Where each query head has a key head of its own, folders have q, k and v head by head.
LayerSpec bigcode_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.fused_by_group = attention.num_kv_heads > 1 && !config.plain_matrices;
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

Status translate_bigcode(const ConfigFields& fields, nlohmann::json* json) {
  FT_RETURN_IF_ERROR(take_gpt2_names(fields, json));
  bool one_key = true;
  FT_RETURN_IF_ERROR(fields.read_flag("multi_query", &one_key));
  if (one_key) (*json)["num_key_value_heads"] = 1;
  (*json)["attention_bias"] = true;
  (*json)["mlp_bias"] = true;
  return {};
}

Status read_bigcode(const ConfigFields& fields, ModelConfig* config) {
  bool scales = true;
  FT_RETURN_IF_ERROR(fields.read_flag("scale_attn_weights", &scales));
  if (!scales) config->attention_scale = 1;
  config->learned_positions = config->max_position_embeddings;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

}  // namespace

// Allal et al. 2023, Li et al. 2023: GPT-2's blocks with one key head for all queries.
constinit const Architecture kGptBigCodeArchitecture = {
    .name = "GPTBigCodeForCausalLM",
    .description = "StarCoder, StarCoderBase, SantaCoder as transformers names it",
    .defaults = R"({"vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
                    "n_positions": 1024, "activation_function": "gelu_pytorch_tanh",
                    "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .positions = "wpe",
                .layer = bigcode_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_bigcode,
    .read = read_bigcode,
};

}  // namespace foretoken
