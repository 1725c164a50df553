#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LinearSpec olmo_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.files = LinearFiles::kEach;
  linear.scale_factor = config.recurrent.scale_factor;
  linear.norm_eps = 1e-5f;  // whatever config.json says of others
  linear.in_decay = "a_proj";
  linear.in_scale = "b_proj";
  linear.in_gate = "g_proj";
  linear.norm = "o_norm";
  linear.out = "o_proj";
  return linear;
}

// OLMo 3's layers, with norms behind their parts, or delta networks with norms before both.
LayerSpec olmo_hybrid_layer(const ModelConfig& config, const LayerConfig& layer) {
  if (!layer.recurrent) {
    GqaSpec attention = gqa_of(config, layer);
    attention.qk_norm = QkNorm::kWidth;
    return post_norm_layer(attention, gated_mlp_of(config, layer));
  }
  LayerSpec spec = pre_norm_layer(olmo_delta(config), gated_mlp_of(config, layer));
  spec.mixer_norm = "attention_layer_norm";
  spec.feed_forward_norm = "feedforward_layer_norm";
  return spec;
}

// Sizes that a file leaves out follow from others.
Status translate_olmo_hybrid(const ConfigFields& fields, Json* json) {
  int32_t heads = 0, hidden = 0, key_dim = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  const auto derive = [&](const char* name, int32_t value) {
    if (fields.find(name) == nullptr) (*json)[name] = value;
  };
  derive("linear_num_key_heads", heads);
  derive("linear_num_value_heads", heads);
  int32_t key_heads = heads;
  FT_RETURN_IF_ERROR(fields.read_count("linear_num_key_heads", &key_heads));
  key_dim = static_cast<int32_t>(0.75 * hidden / key_heads);
  FT_RETURN_IF_ERROR(fields.read_count("linear_key_head_dim", &key_dim));
  derive("linear_key_head_dim", key_dim);
  derive("linear_value_head_dim", 2 * key_dim);
  const auto type_of = [](int32_t i, int32_t num_layers) {
    const bool attends = i % 4 == 3 || (num_layers < 4 && i + 1 == num_layers);
    return attends ? "full_attention" : "linear_attention";
  };
  return write_layer_types(fields, type_of, json);
}

// A rope_theta of null says that heads do not turn; where there is none, it is 10000.
Status read_olmo_hybrid(const ConfigFields& fields, ModelConfig* config) {
  const Json* rope = fields.find("rope_parameters");
  const bool still = rope != nullptr && rope->is_object() && rope->contains("rope_theta") &&
                     rope->at("rope_theta").is_null();
  for (LayerConfig& layer : config->layers) layer.rope = !still;
  bool negative = true;
  FT_RETURN_IF_ERROR(fields.read_flag("linear_allow_neg_eigval", &negative));
  config->recurrent.scale_factor = negative ? 2 : 1;
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  return read_linear_sizes(fields, &config->recurrent);
}

}  // namespace

// OLMo Team 2026: gated delta networks in three of four layers, whose scales reach 2, and OLMo 3's
// attention in the others.
constinit const Architecture kOlmoHybridArchitecture = {
    .name = "OlmoHybridForCausalLM",
    .description = "OLMo, hybrid",
    .defaults = R"({"max_position_embeddings": 65536, "linear_conv_kernel_dim": 4})",
    .decoder = {.layer = olmo_hybrid_layer},
    .recurrent_type = "linear_attention",
    .translate = translate_olmo_hybrid,
    .read = read_olmo_hybrid,
};

}  // namespace foretoken
