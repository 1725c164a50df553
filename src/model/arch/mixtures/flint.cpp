#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec flint_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.sinks = "softmax_offset";
  ExpertsSpec experts = experts_of(config);
  experts.shared = "shared_expert.";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

// The first two layers, each fourth and the last have no window; only those with one turn.
Status translate_flint(const ConfigFields& fields, Json* json) {
  const auto type_of = [](int32_t i, int32_t num_layers) {
    const bool full = i < 2 || i % 4 == 1 || i == num_layers - 1;
    return full ? "full_attention" : "sliding_attention";
  };
  FT_RETURN_IF_ERROR(write_layer_types(fields, type_of, json));
  const Json& types = (*json)["layer_types"];
  if (!types.is_array()) return fields.wrong("layer_types", "a list with one entry for each layer");
  Json turning = Json::array();
  for (const Json& type : types) turning.push_back(type == "sliding_attention" ? 1 : 0);
  (*json)["no_rope_layers"] = std::move(turning);
  return {};
}

Status read_flint(const ConfigFields& fields, ModelConfig* config) {
  config->experts.score = ExpertScore::kSigmoid;
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Recursive 2026: Qwen 3's mixtures behind two dense layers, with an expert that all tokens share,
// sigmoid routers without a correction, windows and a sink in every head.
constinit const Architecture kFlintArchitecture = {
    .name = "FlintForCausalLM",
    .description = "Flint",
    .defaults = R"({"max_position_embeddings": 262144, "num_key_value_heads": 4, "head_dim": 128,
                    "sliding_window": 513, "num_experts": 256, "num_experts_per_tok": 6,
                    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 1024,
                    "mlp_only_layers": [0, 1]})",
    .decoder = {.layer = flint_layer},
    .translate = translate_flint,
    .read = read_flint,
};

}  // namespace foretoken
