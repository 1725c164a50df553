#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec gpt_oss_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.sinks = "sinks";
  ExpertsSpec experts = experts_of(config);
  experts.activation = Activation::kClampedSilu;
  experts.files = ExpertFiles::kFusedTurned;
  experts.biased = true;
  experts.alternates = true;
  experts.router = "router";
  return pre_norm_layer(attention, experts);
}

// As transformers has it where a file says nothing about rotary embeddings.
Status translate_gpt_oss(const ConfigFields&, nlohmann::json* json) {
  if (json->contains("rope_scaling") || json->contains("rope_parameters")) return {};
  (*json)["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 32.0},
                             {"beta_fast", 32.0},   {"beta_slow", 1.0},
                             {"truncate", false},   {"original_max_position_embeddings", 4096}};
  return {};
}

Status read_gpt_oss(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  double limit = experts.clamp.limit, alpha = experts.clamp.alpha;
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_limit", &limit));
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_alpha", &alpha));
  experts.clamp.limit = experts.clamp.up_limit = static_cast<float>(limit);
  experts.clamp.alpha = static_cast<float>(alpha);
  experts.score = ExpertScore::kSoftmaxOfChosen;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// OpenAI 2025: every other layer sees a window, each query head has a sink, all products have
// biases, and the gates of the experts are clamped.
constinit const Architecture kGptOssArchitecture = {
    .name = "GptOssForCausalLM",
    .description = "gpt-oss 20b and 120b",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 64,
                    "rms_norm_eps": 1e-5, "rope_theta": 150000.0, "num_local_experts": 128,
                    "num_experts_per_tok": 4, "sliding_window": 128, "sliding_window_pattern": 2,
                    "attention_bias": true, "torch_dtype": "bfloat16"})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = gpt_oss_layer},
    .translate = translate_gpt_oss,
    .read = read_gpt_oss,
};

}  // namespace foretoken
