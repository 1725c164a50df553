#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec glm4_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

Status read_glm4_moe(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  return read_mixture(fields, &experts, &config->layers);
}

// Published files say the size of heads; of others it is what the width leaves, where it divides.
Status translate_glm4_moe(const ConfigFields& fields, nlohmann::json* json) {
  if (fields.find("head_dim") != nullptr) return {};
  int32_t hidden = 0, heads = 0;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  if (hidden % heads != 0) (*json)["head_dim"] = 128;
  return {};
}

constexpr const char* kGlm4MoeVision[] = {"visual.", "model.visual."};

}  // namespace

// Team GLM 2025: the first half of a head turns, DeepSeek V3's mixtures behind the first layers.
constinit const Architecture kGlm4MoeArchitecture = {
    .name = "Glm4MoeForCausalLM",
    .description = "GLM 4.5, 4.5 Air, 4.6 and 4.7",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8,
                    "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5,
                    "attention_out_bias": false, "first_k_dense_replace": 1, "n_group": 1,
                    "topk_group": 1})",
    .decoder = {.layer = glm4_moe_layer},
    .translate = translate_glm4_moe,
    .read = read_glm4_moe,
};

// GLM-V Team 2025: the same with vision, of which only the text part is read.
constinit const Architecture kGlm4vMoeArchitecture = {
    .name = "Glm4vMoeForConditionalGeneration",
    .description = "GLM 4.5V and 4.6V; their text part",
    .defaults = R"({"max_position_embeddings": 65536, "num_key_value_heads": 8,
                    "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "attention_bias": true,
                    "attention_out_bias": false, "first_k_dense_replace": 1, "n_group": 1,
                    "topk_group": 1})",
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kGlm4MoeVision,
                .layer = glm4_moe_layer},
    .text_config = true,
    .read = read_glm4_moe,
};

// Upstage 2026: Llama's attention, GLM 4.5's mixtures in all layers.
constinit const Architecture kSolarOpenArchitecture = {
    .name = "SolarOpenForCausalLM",
    .description = "Solar Open 100B",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "attention_out_bias": false,
                    "intermediate_size": 10240, "first_k_dense_replace": 0, "n_group": 1,
                    "topk_group": 1})",
    .decoder = {.layer = glm4_moe_layer},
    .read = read_glm4_moe,
};

}  // namespace foretoken
