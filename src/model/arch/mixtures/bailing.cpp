#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec bailing_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = !config.plain_matrices;
  attention.base = "attention.";
  attention.qkv = "query_key_value";
  attention.o = "dense";
  attention.q_norm = "query_layernorm";
  attention.k_norm = "key_layernorm";
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = experts_of(config);
  if (config.experts.correction) experts.correction = "gate.expert_bias";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

Status translate_bailing(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"score_function", "scoring_func"},
                                     {"use_qkv_bias", "attention_bias"},
                                     {"moe_router_topk_scaling_factor", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  const Json* out_bias = fields.find("use_bias");
  (*json)["attention_out_bias"] = out_bias != nullptr ? *out_bias : Json(false);
  bool normed = false;
  FT_RETURN_IF_ERROR(fields.read_flag("norm_head", &normed));
  if (normed) {
    return unsupported(fields.where() +
                       ": norm_head is not supported; use a model like Ling 2.0, whose output "
                       "matrix is stored as it is used");
  }
  // A width of one of the shared experts, which the published code makes one MLP.
  if (fields.find("moe_shared_expert_intermediate_size") == nullptr) return {};
  int32_t inner = 0, count = 0;
  FT_RETURN_IF_ERROR(fields.need_count("moe_shared_expert_intermediate_size", &inner));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_shared_experts", &count));
  (*json)["shared_expert_intermediate_size"] = int64_t{inner} * count;
  return {};
}

Status read_bailing(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  config->experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &config->experts, &config->layers));
  config->experts.groups = ExpertGroups::kBestTwo;
  return fields.read_flag("moe_router_enable_expert_bias", &config->experts.correction);
}

}  // namespace

// inclusionAI 2025: Llama's blocks with one matrix for queries, keys and values, and a mixture with
// shared experts, whose router is a softmax.
constinit const Architecture kBailingMoeArchitecture = {
    .name = "BailingMoeForCausalLM",
    .description = "Ling 1 and 1.5: Lite, Coder Lite and Plus",
    .defaults = R"({"max_position_embeddings": 16384, "rope_theta": 600000.0,
                    "num_shared_experts": 0, "first_k_dense_replace": 0})",
    .decoder = {.embedding = "word_embeddings", .layer = bailing_layer},
    .translate = translate_bailing,
    .read = read_bailing,
};

// inclusionAI 2025: heads of queries and keys are normed and turn by half, routers are DeepSeek
// V3's. Files may bring modules that predict further tokens.
constinit const Architecture kBailingMoeV2Architecture = {
    .name = "BailingMoeV2ForCausalLM",
    .description = "Ling 2.0 and Ring 2.0, with their MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 32768, "rope_theta": 600000.0,
                    "partial_rotary_factor": 0.5, "use_qk_norm": true, "score_function": "sigmoid",
                    "moe_router_enable_expert_bias": true, "num_shared_experts": 1,
                    "num_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
                    "moe_intermediate_size": 512, "first_k_dense_replace": 1})",
    .decoder = {.embedding = "word_embeddings", .layer = bailing_layer},
    .mtp = {.output_norm = "final_layernorm", .chains_normed = true},
    .translate = translate_bailing,
    .read = read_bailing,
};

// Sarvam AI 2026: the same, whose heads turn whole.
constinit const Architecture kSarvamMoeArchitecture = {
    .name = "SarvamMoEForCausalLM",
    .description = "Sarvam 30B",
    .defaults = R"({"max_position_embeddings": 131072, "rope_theta": 8000000.0, "head_dim": 64,
                    "num_key_value_heads": 4, "use_qk_norm": true, "score_function": "sigmoid",
                    "moe_router_enable_expert_bias": true, "num_shared_experts": 1,
                    "num_experts": 128, "num_experts_per_tok": 6, "n_group": 1, "topk_group": 1,
                    "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
                    "routed_scaling_factor": 2.5})",
    .decoder = {.embedding = "word_embeddings", .layer = bailing_layer},
    .translate = translate_bailing,
    .read = read_bailing,
};

}  // namespace foretoken
