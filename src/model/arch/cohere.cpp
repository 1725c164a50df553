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

Status refuse_mixture(const ConfigFields& fields, nlohmann::json*) {
  if (fields.find("num_experts") == nullptr) return {};
  return unsupported(fields.where() +
                     ": mixtures of experts are not supported inside this model; use a model whose "
                     "text part is dense");
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

constexpr const char* kCohereVision[] = {"vision_tower.", "multi_modal_projector.",
                                         "model.vision_tower.", "model.multi_modal_projector."};

constexpr Architecture cohere2_with_vision(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = kCohere2Defaults,
      .window_rule = WindowRule::kPattern,
      .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                              {"language_model.model.", "language_model.lm_head.weight"}}},
                  .ignored = kCohereVision,
                  .layer = cohere_layer,
                  .norms = {.kind = NormKind::kLayer}},
      .text_config = true,
      .only_windows_turn = true,
      .translate = refuse_mixture,
      .read = read_cohere,
  };
}

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

// Cohere 2025: Cohere 2 behind a vision tower, of which only the text part is read.
constinit const Architecture kAyaVisionArchitecture =
    cohere2_with_vision("AyaVisionForConditionalGeneration", "Aya Vision; its text part");
constinit const Architecture kCohere2VisionArchitecture =
    cohere2_with_vision("Cohere2VisionForConditionalGeneration", "Command A Vision; its text part");

}  // namespace foretoken
