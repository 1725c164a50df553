#include <nlohmann/json.hpp>

#include "model/arch/alibi.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec bloom_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.fused_by_group = !config.plain_matrices;
  attention.base = "self_attention.";
  attention.qkv = "query_key_value";
  attention.o = "dense";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  return pre_norm_layer(attention, mlp);
}

Status translate_bloom(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"n_embed", "hidden_size"},
                                     {"n_layer", "num_hidden_layers"},
                                     {"n_head", "num_attention_heads"},
                                     {"seq_length", "max_position_embeddings"}};
  take_renamed(fields, kNames, json);
  int32_t hidden = 0;
  FT_RETURN_IF_ERROR(ConfigFields(*json, fields.where()).need_count("hidden_size", &hidden));
  (*json)["intermediate_size"] = 4 * hidden;
  (*json)["hidden_act"] = "gelu_pytorch_tanh";
  (*json)["attention_bias"] = true;
  (*json)["mlp_bias"] = true;
  bool normed = false;
  FT_RETURN_IF_ERROR(fields.read_flag("apply_residual_connection_post_layernorm", &normed));
  if (!normed) return {};
  return unsupported(fields.where() +
                     ": apply_residual_connection_post_layernorm is not supported; use a model "
                     "whose residual is not normed");
}

Status read_bloom(const ConfigFields&, ModelConfig* config) {
  fall_with_distance(config, alibi_slopes(config->num_heads));
  return {};
}

LayerSpec mpt_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = "attn.";
  attention.qkv = "Wqkv";
  attention.o = "out_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.base = "ffn.";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "norm_1";
  spec.feed_forward_norm = "norm_2";
  return spec;
}

// What the attention of a config.json says; an empty object where it says nothing.
Json mpt_attention(const ConfigFields& fields) {
  const Json* found = fields.find("attn_config");
  return found != nullptr && found->is_object() ? *found : Json::object();
}

// What no published model but those for experiments has.
Status check_mpt(const ConfigFields& fields, const ConfigFields& attention) {
  bool alibi = true, no_bias = true, prefix = false, normed = false;
  FT_RETURN_IF_ERROR(fields.read_flag("no_bias", &no_bias));
  FT_RETURN_IF_ERROR(attention.read_flag("alibi", &alibi));
  FT_RETURN_IF_ERROR(attention.read_flag("prefix_lm", &prefix));
  FT_RETURN_IF_ERROR(attention.read_flag("qk_ln", &normed));
  const Json* type = attention.find("attn_type");
  const char* field = !no_bias                                ? "no_bias false"
                      : !alibi                                ? "attn_config with alibi false"
                      : prefix                                ? "attn_config with prefix_lm"
                      : normed                                ? "attn_config with qk_ln"
                      : fields.find("logit_scale") != nullptr ? "logit_scale"
                      : type != nullptr && *type != "multihead_attention"
                          ? "attn_config with another attn_type than multihead_attention"
                          : nullptr;
  if (field == nullptr) return {};
  return unsupported(fields.where() + ": " + field +
                     " is not supported; use a model like MPT 7B or 30B");
}

Status translate_mpt(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"d_model", "hidden_size"},
                                     {"n_layers", "num_hidden_layers"},
                                     {"n_heads", "num_attention_heads"},
                                     {"max_seq_len", "max_position_embeddings"}};
  take_renamed(fields, kNames, json);
  int32_t hidden = 0, ratio = 4;
  FT_RETURN_IF_ERROR(fields.need_count("d_model", &hidden));
  FT_RETURN_IF_ERROR(fields.read_count("expansion_ratio", &ratio));
  const int64_t inner = int64_t{hidden} * ratio;
  (*json)["intermediate_size"] = inner;
  return {};
}

Status read_mpt(const ConfigFields& fields, ModelConfig* config) {
  const Json json = mpt_attention(fields);
  const ConfigFields attention(json, fields.where() + " (attn_config)");
  FT_RETURN_IF_ERROR(check_mpt(fields, attention));
  double clip = 0, most = 8, scale = config->attention_scale;
  FT_RETURN_IF_ERROR(attention.read_positive("clip_qkv", &clip));
  FT_RETURN_IF_ERROR(attention.read_positive("alibi_bias_max", &most));
  FT_RETURN_IF_ERROR(attention.read_positive("softmax_scale", &scale));
  config->qkv_clip = static_cast<float>(clip);
  config->attention_scale = static_cast<float>(scale);
  fall_with_distance(config, alibi_slopes_by_parity(config->num_heads, static_cast<float>(most)));
  return {};
}

// `name`: of the class.
constexpr Architecture mpt_architecture(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"vocab_size": 50368, "d_model": 2048, "n_layers": 24, "n_heads": 16,
                      "max_seq_len": 2048, "hidden_act": "gelu", "layer_norm_epsilon": 1e-5,
                      "tie_word_embeddings": true})",
      .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                  .embedding = "wte",
                  .layers = "blocks.",
                  .last_norm = "norm_f",
                  .layer = mpt_layer,
                  .norms = {.kind = NormKind::kLayer}},
      .translate = translate_mpt,
      .read = read_mpt,
  };
}

}  // namespace

// Le Scao et al. 2022: scores fall with distance instead of positions, the embedding is normed, and
// one matrix holds q, k and v of each head.
constinit const Architecture kBloomArchitecture = {
    .name = "BloomForCausalLM",
    .description = "BLOOM, BLOOMZ",
    .defaults = R"({"vocab_size": 250880, "hidden_size": 64, "num_hidden_layers": 2,
                    "num_attention_heads": 8, "max_position_embeddings": 2048,
                    "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {"", "lm_head.weight"}}},
                .embedding = "word_embeddings",
                .layers = "h.",
                .last_norm = "ln_f",
                .embedding_norm = "word_embeddings_layernorm",
                .layer = bloom_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_bloom,
    .read = read_bloom,
};

// MosaicML 2023: scores fall with distance, nothing has a bias, and q, k and v may be clipped.
constinit const Architecture kMptArchitecture =
    mpt_architecture("MptForCausalLM", "MPT 7B and 30B, as transformers names them");

constinit const Architecture kMosaicMptArchitecture =
    mpt_architecture("MPTForCausalLM", "MPT 7B and 30B");

}  // namespace foretoken
