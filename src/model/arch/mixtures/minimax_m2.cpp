#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec minimax_m2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  if (config.qk_norm) attention.qk_norm = QkNorm::kWidth;
  ExpertsSpec experts = mixtral_experts_of(config);
  if (config.experts.correction) experts.correction = "e_score_correction_bias";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

// The turning part of a head is a number of elements here.
Status translate_minimax_m2(const ConfigFields& fields, nlohmann::json* json) {
  if (fields.find("rotary_dim") == nullptr || fields.find("head_dim") == nullptr) return {};
  int32_t turning = 0, dim = 0;
  FT_RETURN_IF_ERROR(fields.need_count("rotary_dim", &turning));
  FT_RETURN_IF_ERROR(fields.need_count("head_dim", &dim));
  (*json)["partial_rotary_factor"] = static_cast<double>(turning) / dim;
  return {};
}

Status read_minimax_m2(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.correction = true;
  experts.normalised = true;
  config->qk_norm = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_routing_bias", &experts.correction));
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// MiniMax 2025: norms of whole rows of queries and keys, heads that turn in part, and a mixture in
// each block.
constinit const Architecture kMinimaxM2Architecture = {
    .name = "MiniMaxM2ForCausalLM",
    .description = "MiniMax M2, M2.1, M2.5 and M2.7",
    .defaults = R"({"max_position_embeddings": 196608, "num_key_value_heads": 8, "head_dim": 128,
                    "rope_theta": 5000000.0, "rotary_dim": 64})",
    .decoder = {.layer = minimax_m2_layer},
    .translate = translate_minimax_m2,
    .read = read_minimax_m2,
};

}  // namespace foretoken
