#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LinearSpec lara_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.files = LinearFiles::kJoined;
  linear.in_qkv = "in_proj";
  linear.norm = "out_norm";
  return linear;
}

LayerSpec lara_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.shared = "shared_expert.";
  if (layer.recurrent) return pre_norm_layer(lara_delta(config), experts);
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, experts);
}

// Of five layers two have delta networks, two windows, and one, whose heads do not turn, neither.
Status translate_lara(const ConfigFields& fields, Json* json) {
  constexpr const char* kTypes[] = {"linear_attention", "sliding_attention", "linear_attention",
                                    "full_attention", "sliding_attention"};
  FT_RETURN_IF_ERROR(
      write_layer_types(fields, [&](int32_t i, int32_t) { return kTypes[i % 5]; }, json));
  const Json& types = (*json)["layer_types"];
  if (!types.is_array()) return fields.wrong("layer_types", "a list with one entry for each layer");
  Json turning = Json::array();
  for (const Json& type : types) turning.push_back(type == "full_attention" ? 0 : 1);
  (*json)["no_rope_layers"] = std::move(turning);
  const Json* inner = fields.find("moe_intermediate_size");
  if (inner != nullptr) (*json)["intermediate_size"] = *inner;  // no layer is dense
  return {};
}

Status read_lara(const ConfigFields& fields, ModelConfig* config) {
  config->experts.normalised = true;
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  FT_RETURN_IF_ERROR(read_linear_sizes(fields, &config->recurrent));
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Translated 2026: Qwen 3.5's delta networks beside Qwen 3's attention, mixtures with an expert
// that all tokens share.
constinit const Architecture kLaraMiniArchitecture = {
    .name = "LaraMiniForCausalLM",
    .description = "Lara 4 Mini",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 128,
                    "sliding_window": 512, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
                    "linear_value_head_dim": 128, "linear_num_key_heads": 8,
                    "linear_num_value_heads": 16, "num_experts": 128, "num_experts_per_tok": 4,
                    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                    "tie_word_embeddings": true})",
    .decoder = {.layer = lara_layer},
    .recurrent_type = "linear_attention",
    .translate = translate_lara,
    .read = read_lara,
};

}  // namespace foretoken
