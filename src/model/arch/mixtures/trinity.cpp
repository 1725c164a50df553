#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec trinity_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.gates = HeadGates::kEachElement;
  ExpertsSpec experts = experts_of(config);
  experts.router = "router.gate";
  experts.correction = "expert_bias";
  LayerSpec spec = sandwich_layer(attention, experts_or_mlp(config, layer, experts));
  spec.feed_forward_norm = "pre_mlp_layernorm";
  spec.feed_forward_post_norm = "post_mlp_layernorm";
  return spec;
}

Status translate_trinity(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"num_dense_layers", "first_k_dense_replace"},
                                     {"global_attn_every_n_layers", "sliding_window_pattern"},
                                     {"score_func", "scoring_func"},
                                     {"route_norm", "norm_topk_prob"},
                                     {"route_scale", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  return {};
}

Status read_trinity(const ConfigFields& fields, ModelConfig* config) {
  bool scaled = false;
  FT_RETURN_IF_ERROR(fields.read_flag("mup_enabled", &scaled));
  if (scaled) config->embedding_scale = std::sqrt(static_cast<float>(config->hidden_size));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Arcee 2025: norms around both parts, three layers with a window and rotary positions to one with
// neither, gates of what attention leaves, and sigmoid routers with a correction.
constinit const Architecture kTrinityArchitecture = {
    .name = "AfmoeForCausalLM",
    .description = "Trinity Nano, Mini and Large",
    .defaults = R"({"max_position_embeddings": 16384, "head_dim": 128, "rms_norm_eps": 1e-5,
                    "sliding_window": 1024, "global_attn_every_n_layers": 4, "num_experts": 64,
                    "num_experts_per_tok": 6, "num_shared_experts": 2,
                    "moe_intermediate_size": 1408, "num_dense_layers": 1})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = trinity_layer},
    .only_windows_turn = true,
    .translate = translate_trinity,
    .read = read_trinity,
};

}  // namespace foretoken
