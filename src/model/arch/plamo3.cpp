#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Norms behind parts begin smaller, at 1 / 5 and 1 / 5^1.5, and files hold what is beyond that.
LayerSpec plamo3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.qk_norm = QkNorm::kHead;
  attention.base = "mixer.";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  return {.mixer_norm = "pre_mixer_norm",
          .mixer = attention,
          .mixer_post_norm = "post_mixer_norm",
          .feed_forward_norm = "pre_mlp_norm",
          .feed_forward = mlp,
          .feed_forward_post_norm = "post_mlp_norm",
          .mixer_post_offset = 1 / 5.0f - 1,
          .feed_forward_post_offset = std::pow(5.0f, -1.5f) - 1};
}

// Files without rope_scaling_factor are older: their window counts positions before a row alone,
// that of others the row, too.
Status translate_plamo3(const ConfigFields& fields, Json* json) {
  int32_t window = 2048;
  double factor = 1;
  const Json* listed = fields.find("sliding_window");
  if (listed != nullptr && listed->is_array()) {
    for (const Json& each : *listed) {
      if (each.is_number_integer()) (*json)["window_size"] = each;
    }
  } else if (listed != nullptr && fields.find("window_size") == nullptr) {
    (*json)["window_size"] = *listed;
  }
  FT_RETURN_IF_ERROR(fields.of(*json).read_count("window_size", &window));
  (*json)["sliding_window"] = window + (fields.find("rope_scaling_factor") == nullptr ? 1 : 0);
  FT_RETURN_IF_ERROR(fields.read_positive("rope_scaling_factor", &factor));
  if (factor != 1) {
    return unsupported(fields.where() +
                       ": rope_scaling_factor other than 1 is not supported; use a model like "
                       "PLaMo 3 NICT 2B");
  }
  constexpr RenamedField kNames[] = {{"rope_local_theta", "rope_local_base_freq"}};
  take_renamed(fields, kNames, json);
  (*json)["hidden_act"] = "silu";
  return {};
}

Status read_plamo3(const ConfigFields& fields, ModelConfig* config) {
  bool scales = false;
  FT_RETURN_IF_ERROR(fields.read_flag("scale_embedding", &scales));
  if (scales) config->embedding_scale = std::sqrt(static_cast<float>(config->hidden_size));
  return {};
}

}  // namespace

// Preferred Networks and NICT 2025: windows in all layers but each eighth, norms of queries, of
// keys and on both sides of parts.
constinit const Architecture kPlamo3Architecture = {
    .name = "Plamo3ForCausalLM",
    .description = "PLaMo 3",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "head_dim": 128,
                    "num_key_value_heads": 4, "rope_theta": 1000000.0,
                    "rope_local_theta": 10000.0, "window_size": 2048, "sliding_window_pattern": 8,
                    "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layers = "layers.layers.", .layer = plamo3_layer, .norms = {.offset = 1}},
    .translate = translate_plamo3,
    .read = read_plamo3,
};

}  // namespace foretoken
