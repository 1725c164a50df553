#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

constexpr const char* kMistralDefaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096})";

// Ministral 3's, or Mistral 4's: latent attention and mixtures of experts.
LayerSpec ministral3_layer(const ModelConfig& config, const LayerConfig& layer) {
  const QueryGrowth& growth = config.query_growth;
  const QueryScale scale = {growth.beta, static_cast<float>(growth.context), 0};
  if (config.latent.exists()) {
    LatentSpec attention = latent_of(config, layer);
    attention.query_scale = scale;
    return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
  }
  GqaSpec attention = gqa_of(config, layer);
  attention.query_scale = scale;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// Among what scales positions, or beside that in GGUF files; without a beta queries do not grow.
Status read_ministral3(const ConfigFields& fields, ModelConfig* config) {
  const nlohmann::json* rope = fields.find("rope_parameters");
  if (rope == nullptr) rope = fields.find("rope_scaling");
  if (rope == nullptr || !rope->is_object()) return {};
  const ConfigFields inside(*rope, fields.where() + " (rope_parameters)");
  double beta = 0;
  FT_RETURN_IF_ERROR(fields.read_positive("llama_4_scaling_beta", &beta));
  FT_RETURN_IF_ERROR(inside.read_positive("llama_4_scaling_beta", &beta));
  if (beta == 0) return {};
  config->query_growth.beta = static_cast<float>(beta);
  return inside.need_count("original_max_position_embeddings", &config->query_growth.context);
}

Status read_mistral4(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_ministral3(fields, config));
  if (!config->latent.exists()) return {};
  config->experts.groups = ExpertGroups::kBestTwo;
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

// Tensors of the parts that read images.
constexpr const char* kMistralVision[] = {"vision_tower.", "multi_modal_projector.",
                                          "model.vision_tower.", "model.multi_modal_projector."};

}  // namespace

// Jiang et al. 2023: Llama's blocks; every layer sees a window where sliding_window is a number
// (7B v0.1), and all positions where it is null (later models).
constinit const Architecture kMistralArchitecture = {
    .name = "MistralForCausalLM",
    .description = "Mistral 7B, Nemo, Small and Ministral 8B",
    .defaults = kMistralDefaults,
    .window_rule = WindowRule::kAlways,
};

// The same, as newer exports of Ministral 8B call it; layer_types says which layers see a window.
constinit const Architecture kMinistralArchitecture = {
    .name = "MinistralForCausalLM",
    .description = "Ministral 8B, newer exports",
    .defaults = kMistralDefaults,
    .window_rule = WindowRule::kAlways,
};

// Mistral AI 2025: queries grow with their positions beyond the original context.
constinit const Architecture kMinistral3Architecture = {
    .name = "Ministral3ForCausalLM",
    .description = "Ministral 3",
    .defaults = R"({"max_position_embeddings": 262144, "num_key_value_heads": 8,
                    "head_dim": 128, "rms_norm_eps": 1e-5})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = ministral3_layer},
    .read = read_ministral3,
};

// Mistral AI 2026.
constinit const Architecture kMistral4Architecture = {
    .name = "Mistral4ForCausalLM",
    .description = "Mistral Small 4",
    .defaults = R"({"max_position_embeddings": 1048576, "qk_nope_head_dim": 64,
                    "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 256})",
    .decoder = {.layer = ministral3_layer},
    .read = read_mistral4,
};

// The models with vision, of which only the text part is read: Mistral's, Ministral 3's or
// Mistral 4's.
constinit const Architecture kMistral3ConditionalArchitecture = {
    .name = "Mistral3ForConditionalGeneration",
    .description = "Mistral Small 3.1 to 4, Ministral 3, with vision; their text part",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kMistralVision,
                .layer = ministral3_layer},
    .text_config = true,
    .read = read_mistral4,
};

}  // namespace foretoken
