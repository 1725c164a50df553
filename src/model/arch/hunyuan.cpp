#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec hunyuan_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kTurned;
  attention.q_norm = "query_layernorm";
  attention.k_norm = "key_layernorm";
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

LayerSpec hunyuan_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = hunyuan_layer(config, layer);
  ExpertsSpec experts = experts_of(config);
  experts.router = "gate.wg";
  experts.shared = "shared_mlp.";
  spec.feed_forward = experts_or_mlp(config, layer, experts);
  return spec;
}

LayerSpec maincoder_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kTurned;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// Files may list a number for each layer; all must be the same.
Status flatten(const ConfigFields& fields, const char* name, nlohmann::json* json) {
  const nlohmann::json* value = fields.find(name);
  if (value == nullptr || !value->is_array()) return {};
  const bool even =
      !value->empty() &&
      std::all_of(value->begin(), value->end(), [&](const auto& n) { return n == value->front(); });
  if (!even) {
    return unsupported(fields.where() + ": '" + name +
                       "' that differs between layers is not supported; use another model");
  }
  (*json)[name] = value->front();
  return {};
}

// The shared expert is as wide as so many dense MLPs.
Status translate_hunyuan_moe(const ConfigFields& fields, nlohmann::json* json) {
  for (const char* name :
       {"num_experts", "moe_topk", "moe_intermediate_size", "num_shared_expert"}) {
    FT_RETURN_IF_ERROR(flatten(fields, name, json));
  }
  const ConfigFields flat(*json, fields.where());
  int32_t shared = 1, inner = 0;
  FT_RETURN_IF_ERROR(flat.read_count("num_shared_expert", &shared));
  FT_RETURN_IF_ERROR(flat.need_count("intermediate_size", &inner));
  (*json)["shared_expert_intermediate_size"] = int64_t{shared} * inner;
  return {};
}

Status read_hunyuan_moe(const ConfigFields& fields, ModelConfig* config) {
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Tencent 2025: Llama's blocks with norms of queries and keys that have turned.
constinit const Architecture kHunyuanArchitecture = {
    .name = "HunYuanDenseV1ForCausalLM",
    .description = "Hunyuan, dense",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})",
    .decoder = {.layer = hunyuan_layer},
};

// Maincode 2025: the same under Qwen 3's names.
constinit const Architecture kMaincoderArchitecture = {
    .name = "MaincoderForCausalLM",
    .description = "Maincoder 1B",
    .defaults = R"({"max_position_embeddings": 2048})",
    .decoder = {.layer = maincoder_layer},
};

// Tencent 2025: Hunyuan's blocks with a mixture and a shared expert in each block.
constinit const Architecture kHunyuanMoeArchitecture = {
    .name = "HunYuanMoEV1ForCausalLM",
    .description = "Hunyuan A13B",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "moe_topk": 1})",
    .decoder = {.layer = hunyuan_moe_layer},
    .translate = translate_hunyuan_moe,
    .read = read_hunyuan_moe,
};

}  // namespace foretoken
