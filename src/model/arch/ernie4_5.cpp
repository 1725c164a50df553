#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec ernie4_5_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

Status translate_ernie4_5(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("use_bias")) {
    (*json)["attention_bias"] = *bias;
    (*json)["mlp_bias"] = *bias;
  }
  return {};
}

LayerSpec ernie4_5_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  ExpertsSpec experts = experts_of(config);
  if (config.experts.correction) experts.correction = "moe_statics.e_score_correction_bias";
  experts.correction_is_row = true;
  experts.shared_bias = config.mlp_bias;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

// Of what is read; files do not have it.
constexpr const char* kCorrection = "moe_correction";

// The draft module in the same files; draft_head.h reads it.
constexpr const char* kErnieModules[] = {"model.mtp_"};

// Of all matrices but those of the experts and the router.
Status translate_ernie4_5_moe(const ConfigFields& fields, Json* json) {
  const auto* bias = fields.find("use_bias");
  (*json)["attention_bias"] = (*json)["mlp_bias"] = bias != nullptr ? *bias : Json(false);
  return {};
}

Status read_ernie4_5_moe(const ConfigFields& fields, ModelConfig* config) {
  config->head_bias = config->mlp_bias;
  config->experts.correction = true;
  config->experts.normalised = true;
  FT_RETURN_IF_ERROR(fields.read_flag(kCorrection, &config->experts.correction));
  return read_mixture(fields, &config->experts, &config->layers);
}

// Of texts and of images, in published files; texts come first.
constexpr const char* kPairedFields[] = {"moe_num_experts", "moe_intermediate_size",
                                         "moe_layer_start_index", "moe_layer_end_index"};

Status translate_ernie4_5_vl(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(translate_ernie4_5_moe(fields, json));
  for (const char* name : kPairedFields) {
    const Json* value = fields.find(name);
    if (value == nullptr || !value->is_array()) continue;
    if (value->size() != 2) return fields.wrong(name, "a number of texts and one of images");
    (*json)[name] = Json((*value)[0]);
  }
  const bool tells_layers = fields.find("mlp_layer_types") != nullptr;
  if (!tells_layers && fields.find("moe_layer_start_index") == nullptr) {
    (*json)["moe_layer_start_index"] = 1;
  }
  return {};
}

constexpr const char* kErnieVision[] = {"vision_model.", "model.vision_model.", "resampler_model.",
                                        "model.resampler_model."};

// MLX's tools leave the correction of choices out.
void take_mlx_ernie(Json* json) { (*json)[kCorrection] = false; }

}  // namespace

// Baidu 2025, the dense models: Llama's blocks, where pairs of a head lie side by side and use_bias
// asks for biases everywhere.
constinit const Architecture kErnie4_5Architecture = {
    .name = "Ernie4_5ForCausalLM",
    .description = "ERNIE 4.5, dense",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
                    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true})",
    .decoder = {.layer = ernie4_5_layer},
    .translate = translate_ernie4_5,
};

// Baidu 2025, the text models: the same with mixtures and shared experts behind the first layer,
// and a dense module, whose states pass the model's own last norm (FastDeploy's ernie4_5_mtp.py).
constinit const Architecture kErnie4_5MoeArchitecture = {
    .name = "Ernie4_5_MoeForCausalLM",
    .description = "ERNIE 4.5, mixtures, with their MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 4,
                    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true,
                    "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
                    "moe_intermediate_size": 1536, "moe_layer_start_index": 1})",
    .decoder = {.ignored = kErnieModules, .layer = ernie4_5_moe_layer},
    .mtp = {.layers = "mtp_block.",
            .counts_on = false,
            .projection = "mtp_linear_proj",
            .embed_norm = "mtp_emb_norm",
            .state_norm = "mtp_hidden_norm",
            .output_norm = "norm",
            .chains_normed = true,
            .together = "",
            .numbered_apart = true,
            .count = 1,
            .layer = ernie4_5_layer},
    .translate = translate_ernie4_5_moe,
    .take_mlx = take_mlx_ernie,
    .read = read_ernie4_5_moe,
};

// Baidu 2025, with vision, of which only the text part is read: rows of texts go to experts of
// their own (take_text_experts of a Checkpoint), and all axes of their positions are one.
constinit const Architecture kErnie4_5VlMoeArchitecture = {
    .name = "Ernie4_5_VLMoeForConditionalGeneration",
    .description = "ERNIE 4.5 VL; its text part",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 4,
                    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true,
                    "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
                    "moe_intermediate_size": 1536})",
    .decoder = {.ignored = kErnieVision, .layer = ernie4_5_moe_layer},
    .text_config = true,
    .translate = translate_ernie4_5_vl,
    .read = read_ernie4_5_moe,
};

}  // namespace foretoken
