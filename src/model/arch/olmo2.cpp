#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec olmo2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kWidth;
  return post_norm_layer(attention, gated_mlp_of(config, layer));
}

// A scaling is for the layers without a window alone.
Status translate_olmo3(const ConfigFields& fields, nlohmann::json* json) {
  const nlohmann::json* scaling = fields.find("rope_scaling");
  if (scaling == nullptr || !scaling->is_object() || fields.find("rope_parameters") != nullptr) {
    return {};
  }
  (*json)["rope_parameters"] = {{"full_attention", *scaling},
                                {"sliding_attention", {{"rope_type", "default"}}}};
  json->erase("rope_scaling");
  return {};
}

}  // namespace

// OLMo Team 2025: norms of what blocks add and none before them; all queries of a row, and all
// keys, are normed together.
constinit const Architecture kOlmo2Architecture = {
    .name = "Olmo2ForCausalLM",
    .description = "OLMo 2",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})",
    .decoder = {.layer = olmo2_layer},
};

// OLMo Team 2025: the same, with a window in three of four layers.
constinit const Architecture kOlmo3Architecture = {
    .name = "Olmo3ForCausalLM",
    .description = "OLMo 3",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                    "sliding_window": 4096, "sliding_window_pattern": 4})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = olmo2_layer},
    .translate = translate_olmo3,
};

}  // namespace foretoken
