#include <nlohmann/json.hpp>

#include "base/bfloat16.h"
#include "model/arch/alibi.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

GqaSpec grouped_attention(const ModelConfig& config, const LayerConfig& layer, const char* base) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.fused_by_group = !config.plain_matrices;
  attention.base = base;
  attention.qkv = "query_key_value";
  attention.o = "dense";
  return attention;
}

PlainMlpSpec four_times_mlp(const ModelConfig& config, const LayerConfig& layer) {
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  return mlp;
}

LayerSpec gpt_neox_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec =
      pre_norm_layer(grouped_attention(config, layer, "attention."), four_times_mlp(config, layer));
  spec.parallel = config.parallel_blocks;
  return spec;
}

Status translate_gpt_neox(const ConfigFields& fields, Json* json) {
  if (const Json* part = fields.find("rotary_pct")) (*json)["partial_rotary_factor"] = *part;
  if (const Json* base = fields.find("rotary_emb_base")) (*json)["rope_theta"] = *base;
  (*json)["mlp_bias"] = true;
  return {};
}

Status read_gpt_neox(const ConfigFields& fields, ModelConfig* config) {
  return fields.read_flag("use_parallel_residual", &config->parallel_blocks);
}

LayerSpec falcon_layer(const ModelConfig& config, const LayerConfig& layer) {
  const GqaSpec attention = grouped_attention(config, layer, "self_attention.");
  const PlainMlpSpec mlp = four_times_mlp(config, layer);
  if (!config.parallel_blocks) return pre_norm_layer(attention, mlp);
  LayerSpec spec = parallel_layer(attention, mlp);
  if (config.parallel_norms) {
    spec.mixer_norm = "ln_attn";
    // GGUF files call the one of the MLP what smaller models call the only one.
    spec.feed_forward_norm = config.plain_matrices ? "input_layernorm" : "ln_mlp";
  }
  return spec;
}

// Models before the 40B have one key head, or one for each query head, whatever num_kv_heads says.
// Files of the first exports (RWForCausalLM) have names of BLOOM's, and say the key heads of the
// newer blocks alone.
Status take_refined_web_names(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"n_layer", "num_hidden_layers"},
                                     {"n_head", "num_attention_heads"},
                                     {"n_head_kv", "num_kv_heads"}};
  take_renamed(fields, kNames, json);
  if (fields.find("n_head_kv") != nullptr) (*json)["new_decoder_architecture"] = true;
  return {};
}

Status translate_falcon(const ConfigFields& read, Json* json) {
  FT_RETURN_IF_ERROR(take_refined_web_names(read, json));
  const Json named = *json;
  const ConfigFields fields(named, read.where());
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

// In the models' own code slopes are bfloat16 and join products before these are scaled.
void use_alibi(ModelConfig* config) {
  std::vector<float> slopes = alibi_slopes(config->num_heads);
  for (float& slope : slopes) {
    slope = bf16_to_float(bf16_from_float(slope)) * config->attention_scale;
  }
  fall_with_distance(config, std::move(slopes));
}

Status read_falcon(const ConfigFields& fields, ModelConfig* config) {
  bool alibi = false, is_new = false;
  FT_RETURN_IF_ERROR(fields.read_flag("alibi", &alibi));
  if (alibi) use_alibi(config);
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

// Black et al. 2022: attention and MLP read the same residual through norms of their own, a quarter
// of each head turns, and one matrix holds q, k and v of each head.
constinit const Architecture kGptNeoXArchitecture = {
    .name = "GPTNeoXForCausalLM",
    .description = "GPT-NeoX and Pythia",
    .defaults = R"({"max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
                    "attention_bias": true, "use_parallel_residual": true, "rotary_pct": 0.25,
                    "rotary_emb_base": 10000.0})",
    .decoder = {.places = {{{"gpt_neox.", "embed_out.weight"}, {nullptr, nullptr}}},
                .embedding = "embed_in",
                .last_norm = "final_layer_norm",
                .layer = gpt_neox_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gpt_neox,
    .read = read_gpt_neox,
};

// Almazrouei et al. 2023: attention and MLP read the same residual, through one norm, or in the
// larger models through one each; one matrix holds the queries of each key head, it and its values.
constinit const Architecture kFalconArchitecture = {
    .name = "FalconForCausalLM",
    .description = "Falcon 7B to 180B, Falcon RW",
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
