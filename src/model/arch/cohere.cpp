#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec cohere_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  if (config.qk_norm) attention.qk_norm = QkNorm::kOwn;
  return parallel_layer(attention, gated_mlp_of(config, layer));
}

// The same, whose pairs lie half a head apart.
LayerSpec compass_layer(const ModelConfig& config, const LayerConfig& layer) {
  return parallel_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
}

Status read_cohere(const ConfigFields& fields, ModelConfig* config) {
  double logit_scale = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("logit_scale", &logit_scale));
  config->logits_scale = static_cast<float>(logit_scale);
  return fields.read_flag("use_qk_norm", &config->qk_norm);
}

constexpr const char* kCohere2Defaults =
    R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
        "tie_word_embeddings": true, "sliding_window": 4096, "sliding_window_pattern": 4})";

// Layers whose type has no rotary embedding in rope_parameters know no positions.
Status translate_compass(const ConfigFields& fields, nlohmann::json* json) {
  const nlohmann::json* types = fields.find("layer_types");
  const nlohmann::json* ropes = fields.find("rope_parameters");
  if (types == nullptr || !types->is_array() || ropes == nullptr || !ropes->is_object()) return {};
  nlohmann::json turning = nlohmann::json::array();
  for (const nlohmann::json& type : *types) {
    const auto rope = type.is_string() ? ropes->find(type.get<std::string>()) : ropes->end();
    turning.push_back(rope != ropes->end() && rope->is_null() ? 0 : 1);
  }
  (*json)["no_rope_layers"] = std::move(turning);
  return {};
}

constexpr const char* kCompassDefaults =
    R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "tie_word_embeddings": true,
        "sliding_window": 4096})";

constexpr const char* kCompassVision[] = {"model.visual.", "visual."};

}  // namespace

// Cohere 2024: attention and MLP read one layer norm without biases, pairs of a head lie side by
// side, and logits are scaled; the larger models norm each head with weights of its own.
constinit const Architecture kCohereArchitecture = {
    .name = "CohereForCausalLM",
    .description = "Command R and R+, Aya 23",
    .defaults = R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "rope_theta": 500000.0,
                    "logit_scale": 0.0625, "tie_word_embeddings": true})",
    .decoder = {.layer = cohere_layer, .norms = {.kind = NormKind::kLayer}},
    .read = read_cohere,
};

// Cohere 2024: the same, with a window in three of four layers; the others know no positions.
constinit const Architecture kCohere2Architecture = {
    .name = "Cohere2ForCausalLM",
    .description = "Command R7B and Command A, Aya Expanse",
    .defaults = kCohere2Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = cohere_layer, .norms = {.kind = NormKind::kLayer}},
    .only_windows_turn = true,
    .read = read_cohere,
};

// Cohere 2026: the same blocks where heads turn as Llama's do, and types of layers say whether.
constinit const Architecture kCohereCompassTextArchitecture = {
    .name = "CohereCompassForCausalLM",
    .description = "North Micro, text",
    .defaults = kCompassDefaults,
    .decoder = {.layer = compass_layer, .norms = {.kind = NormKind::kLayer}},
    .translate = translate_compass,
    .read = read_cohere,
};

// The same behind a vision tower, of which only the text part is read.
constinit const Architecture kCohereCompassArchitecture = {
    .name = "CohereCompassForConditionalGeneration",
    .description = "North Micro Vision; its text part",
    .defaults = kCompassDefaults,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kCompassVision,
                .layer = compass_layer,
                .norms = {.kind = NormKind::kLayer}},
    .text_config = true,
    .translate = translate_compass,
    .read = read_cohere,
};

}  // namespace foretoken
