#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec hy_v3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = experts_of(config);
  experts.router = "router.gate";
  experts.correction = "expert_bias";
  experts.shared = "shared_mlp.";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

Status translate_hy_v3(const ConfigFields& fields, nlohmann::json* json) {
  constexpr RenamedField kNames[] = {{"router_scaling_factor", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  return {};
}

Status read_hy_v3(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Tencent 2026: norms of each head's queries and keys, sigmoid routers with a correction.
constinit const Architecture kHyV3Architecture = {
    .name = "HYV3ForCausalLM",
    .description = "Hy3",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "rms_norm_eps": 1e-5, "rope_theta": 11158840.0, "num_experts": 192,
                    "num_experts_per_tok": 8, "num_shared_experts": 1,
                    "moe_intermediate_size": 1536, "router_scaling_factor": 2.826,
                    "first_k_dense_replace": 1})",
    .decoder = {.layer = hy_v3_layer},
    .translate = translate_hy_v3,
    .read = read_hy_v3,
};

}  // namespace foretoken
