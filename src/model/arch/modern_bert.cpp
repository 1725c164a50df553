#include <nlohmann/json.hpp>

#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kModernBertDefaults =
    R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152,
        "num_hidden_layers": 22, "num_attention_heads": 12, "max_position_embeddings": 8192,
        "hidden_activation": "gelu", "norm_eps": 1e-5, "local_attention": 128,
        "global_attn_every_n_layers": 3, "rope_theta": 160000, "rope_local_base_freq": 10000})";

LayerSpec modern_bert_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = layer.normed ? "self_attn_layer_norm" : nullptr;
  spec.feed_forward_norm = "final_layer_norm";
  return spec;
}

Status translate_modern_bert(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"global_rope_theta", "rope_theta"},
                                     {"local_rope_theta", "rope_local_base_freq"}};
  take_renamed(fields, kNames, json);
  bool norm_bias = false;
  FT_RETURN_IF_ERROR(fields.read_flag("norm_bias", &norm_bias));
  if (norm_bias) return not_built(fields, "norm_bias", "norms without biases");
  int32_t positions = 0, period = 0;
  FT_RETURN_IF_ERROR(fields.need_count("local_attention", &positions));
  FT_RETURN_IF_ERROR(fields.need_count("global_attn_every_n_layers", &period));
  (*json)["sliding_window"] = positions / 2 + 1;
  see_whole_texts(json);
  return write_layer_types(
      fields,
      [&](int32_t layer, int32_t) {
        return layer % period != 0 ? "sliding_attention" : "full_attention";
      },
      json);
}

Status read_modern_bert(const ConfigFields&, ModelConfig* config) {
  config->both_ways_windows = true;
  config->layers.front().normed = false;
  return {};
}

constexpr DecoderTraits modern_bert_traits() {
  DecoderTraits traits = encoder(modern_bert_layer);
  traits.norms.bias = false;
  return traits;
}

}  // namespace

// Warner et al. 2024.
constinit const Architecture kModernBertArchitecture = {
    .name = "ModernBertModel",
    .description = "ModernBERT: GTE, Nomic Embed and others that embed or judge",
    .defaults = kModernBertDefaults,
    .decoder = modern_bert_traits(),
    .translate = translate_modern_bert,
    .read = read_modern_bert,
};

}  // namespace foretoken
