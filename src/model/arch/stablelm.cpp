#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec stablelm_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  if (config.qk_norm) {
    attention.qk_norm = QkNorm::kOwnListed;
    attention.q_norm = "q_layernorm";
    attention.k_norm = "k_layernorm";
  }
  const GatedMlpSpec mlp = gated_mlp_of(config, layer);
  return config.parallel_blocks ? parallel_layer(attention, mlp) : pre_norm_layer(attention, mlp);
}

Status translate_stablelm(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("use_qkv_bias")) (*json)["attention_bias"] = *bias;
  (*json)["attention_out_bias"] = false;
  return {};
}

Status read_stablelm(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_flag("use_parallel_residual", &config->parallel_blocks));
  return fields.read_flag("qk_layernorm", &config->qk_norm);
}

}  // namespace

// Bellagente et al. 2024: layer norms with biases, and a quarter of each head turns; the 12B model
// norms each head with weights of its own, and its attention and MLP read the same rows.
constinit const Architecture kStableLmArchitecture = {
    .name = "StableLmForCausalLM",
    .description = "StableLM 2, StableLM 3B, Zephyr 3B",
    .defaults = R"({"max_position_embeddings": 4096, "layer_norm_eps": 1e-5,
                    "partial_rotary_factor": 0.25})",
    .decoder = {.layer = stablelm_layer, .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_stablelm,
    .read = read_stablelm,
};

}  // namespace foretoken
