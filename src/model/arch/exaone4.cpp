#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec exaone4_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return post_norm_layer(attention, gated_mlp_of(config, layer));
}

// A pattern of letters, "LLLG", stands for its length; models without a window have none at all.
Status translate_exaone4(const ConfigFields& fields, nlohmann::json* json) {
  const nlohmann::json* pattern = fields.find("sliding_window_pattern");
  if (pattern != nullptr && pattern->is_string()) {
    (*json)["sliding_window_pattern"] = pattern->get<std::string>().size();
  }
  if (fields.find("sliding_window") == nullptr) (*json)["use_sliding_window"] = false;
  return {};
}

}  // namespace

// LG AI Research 2025: norms of what blocks add and none before them, norms of q and k; where some
// layers have a window, the others know no positions.
constinit const Architecture kExaone4Architecture = {
    .name = "Exaone4ForCausalLM",
    .description = "EXAONE 4.0",
    .defaults = R"({"max_position_embeddings": 2048, "num_key_value_heads": 32,
                    "sliding_window_pattern": 4})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = exaone4_layer},
    .only_windows_turn = true,
    .translate = translate_exaone4,
};

}  // namespace foretoken
