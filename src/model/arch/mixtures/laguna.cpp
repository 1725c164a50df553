#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec laguna_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.gates = config.head_gates ? HeadGates::kEachHead : HeadGates::kEachElement;
  attention.gate = HeadGate::kSoftplus;
  attention.gate_proj = "g_proj";
  ExpertsSpec experts = experts_of(config);
  experts.correction = "experts.e_score_correction_bias";
  experts.shared = "shared_expert.";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

Status translate_laguna(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"moe_routed_scaling_factor", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  // The first layer is dense where the file does not say more.
  if (fields.find("mlp_layer_types") == nullptr && fields.find("mlp_only_layers") == nullptr) {
    (*json)["mlp_only_layers"] = {0};
  }
  return {};
}

// Whether a head has one gate; "per-element": each of its elements has.
Status read_gating(const ConfigFields& fields, ModelConfig* config) {
  config->head_gates = true;
  const Json* gating = fields.find("gating");
  if (gating == nullptr || *gating == true || *gating == "per-head") return {};
  if (*gating != "per-element") return fields.wrong("gating", "true, per-head or per-element");
  config->head_gates = false;
  return {};
}

Status read_heads(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  const char* name = "num_attention_heads_per_layer";
  const Json* heads = fields.find(name);
  if (heads == nullptr) return {};
  const char* wanted = "a list with the number of heads of each layer";
  if (!heads->is_array() || heads->size() != layers->size()) return fields.wrong(name, wanted);
  for (size_t i = 0; i < layers->size(); ++i) {
    const Json& count = (*heads)[i];
    if (!count.is_number_integer() || count < 1 || count > 1 << 16) {
      return fields.wrong(name, wanted);
    }
    (*layers)[i].num_heads = count.get<int32_t>();
  }
  return {};
}

Status read_laguna(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_gating(fields, config));
  FT_RETURN_IF_ERROR(read_heads(fields, &config->layers));
  double cap = 0;
  bool on_input = false;
  const Json* softcap = fields.find("moe_router_logit_softcapping");
  if (softcap != nullptr && *softcap != 0) {
    FT_RETURN_IF_ERROR(fields.read_positive("moe_router_logit_softcapping", &cap));
  }
  FT_RETURN_IF_ERROR(fields.read_flag("moe_apply_router_weight_on_input", &on_input));
  if (cap > 0 || on_input) {
    return unsupported(fields.where() +
                       ": moe_router_logit_softcapping and moe_apply_router_weight_on_input are "
                       "not supported; use a model like Laguna XS.2");
  }
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Poolside 2026: gates of heads by softplus, numbers of heads by layer, windows whose rotary
// embedding is their own, and sigmoid routers with a correction behind a dense layer.
constinit const Architecture kLagunaArchitecture = {
    .name = "LagunaForCausalLM",
    .description = "Laguna XS.2 and S 2.1",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "sliding_window": 512, "num_experts": 256, "num_experts_per_tok": 8,
                    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                    "rope_parameters": {
                      "full_attention": {"rope_theta": 500000.0, "partial_rotary_factor": 0.5},
                      "sliding_attention": {"rope_theta": 10000.0}}})",
    .decoder = {.layer = laguna_layer},
    .translate = translate_laguna,
    .read = read_laguna,
};

}  // namespace foretoken
