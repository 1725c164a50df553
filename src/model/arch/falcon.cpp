#include <nlohmann/json.hpp>

#include "model/config/families.h"
#include "model/config/missing_parts.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec falcon_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.fused_by_group = true;
  attention.base = "self_attention.";
  attention.qkv = "query_key_value";
  attention.o = "dense";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  if (!config.parallel_blocks) return pre_norm_layer(attention, mlp);
  LayerSpec spec = parallel_layer(attention, mlp);
  if (config.parallel_norms) {
    spec.mixer_norm = "ln_attn";
    spec.feed_forward_norm = "ln_mlp";
  }
  return spec;
}

// Models before the 40B have one key head, or one for each query head, whatever num_kv_heads says.
Status translate_falcon(const ConfigFields& fields, Json* json) {
  bool is_new = false, one_key = true;
  FT_RETURN_IF_ERROR(fields.read_flag("new_decoder_architecture", &is_new));
  FT_RETURN_IF_ERROR(fields.read_flag("multi_query", &one_key));
  int32_t hidden = 0, heads = 0;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  const Json* kv_heads = fields.find("num_kv_heads");
  (*json)["num_key_value_heads"] = !is_new && one_key              ? Json(1)
                                   : is_new && kv_heads != nullptr ? *kv_heads
                                                                   : Json(heads);
  const Json* inner = fields.find("ffn_hidden_size");
  (*json)["intermediate_size"] = inner != nullptr ? *inner : Json(4 * hidden);
  if (const Json* activation = fields.find("activation")) (*json)["hidden_act"] = *activation;
  if (const Json* bias = fields.find("bias")) (*json)["attention_bias"] = *bias;
  (*json)["mlp_bias"] = (*json)["attention_bias"];
  return {};
}

Status read_falcon(const ConfigFields& fields, ModelConfig* config) {
  bool alibi = false, is_new = false;
  FT_RETURN_IF_ERROR(fields.read_flag("alibi", &alibi));
  if (alibi) return refuse_parts(kAlibiPositions, fields.where());
  config->parallel_blocks = true;
  FT_RETURN_IF_ERROR(fields.read_flag("parallel_attn", &config->parallel_blocks));
  FT_RETURN_IF_ERROR(fields.read_flag("new_decoder_architecture", &is_new));
  config->parallel_blocks = config->parallel_blocks || is_new;
  int32_t norms = 2;
  FT_RETURN_IF_ERROR(fields.read_count("num_ln_in_parallel_attn", &norms));
  config->parallel_norms = is_new && norms == 2;
  return {};
}

}  // namespace

// Almazrouei et al. 2023: attention and MLP read the same residual, through one norm, or in the
// larger models through one each; one matrix holds the queries of each key head, it and its values.
constinit const Architecture kFalconArchitecture = {
    .name = "FalconForCausalLM",
    .description = "Falcon 7B to 180B",
    .defaults = R"({"max_position_embeddings": 2048, "layer_norm_epsilon": 1e-5,
                    "activation": "gelu", "bias": false, "attention_bias": false,
                    "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "word_embeddings",
                .layers = "h.",
                .last_norm = "ln_f",
                .layer = falcon_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_falcon,
    .read = read_falcon,
};

}  // namespace foretoken
