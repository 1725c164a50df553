#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec cohere2_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  ExpertsSpec experts = experts_of(config);
  experts.halves_shared = config.averages_experts;
  return parallel_layer(attention, experts_or_mlp(config, layer, experts));
}

// The first dense layers have a pattern of their own.
Status translate_layer_types(const ConfigFields& fields, Json* json) {
  if (fields.find("layer_types") != nullptr) return {};
  int32_t dense = 0, period = 4, dense_period = 1;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("first_k_dense_replace", &dense));
  FT_RETURN_IF_ERROR(fields.read_count("sliding_window_pattern", &period));
  FT_RETURN_IF_ERROR(fields.read_count("prefix_dense_sliding_window_pattern", &dense_period));
  const auto type_of = [&](int32_t i, int32_t) {
    const bool full = i < dense ? (i + 1) % dense_period == 0 : (i - dense + 1) % period == 0;
    return full ? "full_attention" : "sliding_attention";
  };
  return write_layer_types(fields, type_of, json);
}

Status translate_cohere2_moe(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(translate_layer_types(fields, json));
  constexpr RenamedField kNames[] = {{"prefix_dense_intermediate_size", "intermediate_size"},
                                     {"moe_gate_act", "scoring_func"},
                                     {"expert_selection_fn", "scoring_func"}};
  constexpr RenamedField kWidth[] = {{"intermediate_size", "moe_intermediate_size"}};
  if (fields.find("moe_intermediate_size") == nullptr) take_renamed(fields, kWidth, json);
  take_renamed(fields, kNames, json);
  return {};
}

// Dense layers at the front turn although they have no window, where they have no pattern.
Status turn_dense_layers(const ConfigFields& fields, ModelConfig* config) {
  int32_t period = 1;
  FT_RETURN_IF_ERROR(fields.read_count("prefix_dense_sliding_window_pattern", &period));
  for (LayerConfig& layer : config->layers) {
    if (!layer.experts) layer.rope = layer.rope || period == 1;
  }
  return {};
}

Status read_logit_scale(const ConfigFields& fields, ModelConfig* config) {
  double logit_scale = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("logit_scale", &logit_scale));
  config->logits_scale = static_cast<float>(logit_scale);
  return {};
}

Status read_cohere2_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_logit_scale(fields, config));
  config->rms_norms = fields.find("rms_norm_eps") != nullptr;
  ExpertConfig& experts = config->experts;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  if (experts.score == ExpertScore::kSoftmax) experts.score = ExpertScore::kSoftmaxOfChosen;
  FT_RETURN_IF_ERROR(turn_dense_layers(fields, config));
  const Json* joined = fields.find("shared_expert_combination_strategy");
  if (joined != nullptr && *joined != "average" && *joined != "sum") {
    return fields.wrong("shared_expert_combination_strategy", "\"average\" or \"sum\"");
  }
  config->averages_experts = experts.shared_inner > 0 && (joined == nullptr || *joined != "sum");
  if (config->averages_experts) experts.scale = 0.5f;
  return {};
}

// A text part behind a vision tower is Cohere 2's where it has no experts.
Status translate_vision(const ConfigFields& fields, Json* json) {
  return fields.find("num_experts") != nullptr ? translate_cohere2_moe(fields, json) : Status();
}

Status read_vision(const ConfigFields& fields, ModelConfig* config) {
  const bool has_experts = fields.find("num_experts") != nullptr;
  return has_experts ? read_cohere2_moe(fields, config) : read_logit_scale(fields, config);
}

constexpr const char* kCohereVision[] = {"vision_tower.", "multi_modal_projector.",
                                         "model.vision_tower.", "model.multi_modal_projector."};

constexpr Architecture cohere2_with_vision(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5,
                      "logit_scale": 0.0625, "tie_word_embeddings": true, "sliding_window": 4096,
                      "sliding_window_pattern": 4, "norm_topk_prob": true})",
      .window_rule = WindowRule::kPattern,
      .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                              {"language_model.model.", "language_model.lm_head.weight"}}},
                  .ignored = kCohereVision,
                  .layer = cohere2_moe_layer,
                  .norms = {.kind = NormKind::kLayer}},
      .text_config = true,
      .only_windows_turn = true,
      .translate = translate_vision,
      .read = read_vision,
  };
}

}  // namespace

// Cohere 2026: Cohere 2's parallel blocks with a mixture, behind dense blocks at the front. The sum
// of the experts and the mean of it and the shared ones are two ways of files.
constinit const Architecture kCohere2MoeArchitecture = {
    .name = "Cohere2MoeForCausalLM",
    .description = "North Mini Code, Command A mixtures",
    .defaults = R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "head_dim": 128,
                    "logit_scale": 0.0625, "tie_word_embeddings": true, "sliding_window": 4096,
                    "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = cohere2_moe_layer, .norms = {.kind = NormKind::kLayer}},
    .only_windows_turn = true,
    .translate = translate_cohere2_moe,
    .read = read_cohere2_moe,
};

// Cohere 2025 and 2026: Cohere 2, dense or with a mixture, behind a vision tower, of which only the
// text part is read.
constinit const Architecture kAyaVisionArchitecture =
    cohere2_with_vision("AyaVisionForConditionalGeneration", "Aya Vision; its text part");
constinit const Architecture kCohere2VisionArchitecture =
    cohere2_with_vision("Cohere2VisionForConditionalGeneration",
                        "Command A Vision, dense and mixtures; their text part");

}  // namespace foretoken
