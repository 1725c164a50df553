#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec glimmer_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kUnit;
  attention.gates = HeadGates::kEachElement;
  LayerSpec spec = sandwich_layer(attention, gated_mlp_of(config, layer));
  spec.post_norm_eps = config.post_norm_eps;
  return spec;
}

LayerSpec trinity_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.gates = HeadGates::kEachElement;
  ExpertsSpec experts = experts_of(config);
  experts.router = "router.gate";
  experts.correction = "expert_bias";
  LayerSpec spec = sandwich_layer(attention, experts_or_mlp(config, layer, experts));
  spec.feed_forward_norm = "pre_mlp_layernorm";
  spec.feed_forward_post_norm = "post_mlp_layernorm";
  return spec;
}

Status translate_trinity(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"num_dense_layers", "first_k_dense_replace"},
                                     {"global_attn_every_n_layers", "sliding_window_pattern"},
                                     {"score_func", "scoring_func"},
                                     {"route_norm", "norm_topk_prob"},
                                     {"route_scale", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  return {};
}

// Every fourth layer counted from the last has no window, and knows no positions.
Status translate_glimmer(const ConfigFields& fields, Json* json) {
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  Json types = Json::array(), turning = Json::array();
  for (int32_t i = 0; i < num_layers; ++i) {
    const bool full = (num_layers - 1 - i) % 4 == 0;
    types.push_back(full ? "full_attention" : "sliding_attention");
    turning.push_back(full ? 0 : 1);
  }
  if (fields.find("layer_types") == nullptr) (*json)["layer_types"] = std::move(types);
  (*json)["no_rope_layers"] = std::move(turning);
  const Json* thetas = fields.find("layer_rope_theta");
  if (thetas == nullptr) return {};
  if (!thetas->is_array()) return fields.wrong("layer_rope_theta", "a list of numbers");
  Json own = Json::array(), common;
  for (const Json& theta : *thetas) {
    own.push_back(theta == 0 ? 0 : 1);
    if (theta == 0) continue;
    if (!common.is_null() && common != theta) {
      return fields.wrong("layer_rope_theta", "0 or one and the same number for each layer");
    }
    common = theta;
  }
  (*json)["no_rope_layers"] = std::move(own);
  if (common.is_null()) return {};
  if (fields.find("rope_parameters") != nullptr && (*json)["rope_parameters"].is_object()) {
    (*json)["rope_parameters"]["rope_theta"] = common;
  } else {
    (*json)["rope_theta"] = common;
  }
  return {};
}

Status read_glimmer(const ConfigFields& fields, ModelConfig* config) {
  double queries = 1, logits = 1, eps = config->rms_norm_eps;
  FT_RETURN_IF_ERROR(fields.read_positive("qk_scale_factor", &queries));
  FT_RETURN_IF_ERROR(fields.read_positive("output_multiplier", &logits));
  FT_RETURN_IF_ERROR(fields.read_positive("post_norm_eps", &eps));
  config->attention_scale *= static_cast<float>(queries);
  config->logits_scale = static_cast<float>(logits);
  config->post_norm_eps = static_cast<float>(eps);
  return {};
}

constexpr NormForm kPlainNorm = {};
constexpr NormForm kUnitNorm = {.weighted = false};
constexpr const char* kGlimmerVision[] = {"model.vision_tower.",      "model.vision_adapter.",
                                          "model.vision_projection.", "vision_tower.",
                                          "vision_adapter.",          "vision_projection."};
constexpr const char* kGlimmerDefaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
        "rms_norm_eps": 1e-5, "post_norm_eps": 1e-8, "rope_theta": 500000.0,
        "sliding_window": 2048, "qk_scale_factor": 3.87,
        "output_multiplier": 0.19611613513818404, "final_logit_softcapping": 20.0})";

Status read_trinity(const ConfigFields& fields, ModelConfig* config) {
  bool scaled = false;
  FT_RETURN_IF_ERROR(fields.read_flag("mup_enabled", &scaled));
  if (scaled) config->embedding_scale = std::sqrt(static_cast<float>(config->hidden_size));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Arcee 2025: norms around both parts, three layers with a window and rotary positions to one with
// neither, gates of what attention leaves, and sigmoid routers with a correction.
constinit const Architecture kTrinityArchitecture = {
    .name = "AfmoeForCausalLM",
    .description = "Trinity Nano, Mini and Large",
    .defaults = R"({"max_position_embeddings": 16384, "head_dim": 128, "rms_norm_eps": 1e-5,
                    "sliding_window": 1024, "global_attn_every_n_layers": 4, "num_experts": 64,
                    "num_experts_per_tok": 6, "num_shared_experts": 2,
                    "moe_intermediate_size": 1408, "num_dense_layers": 1})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = trinity_layer},
    .only_windows_turn = true,
    .translate = translate_trinity,
    .read = read_trinity,
};

// Meta 2026: the same attention in dense layers, with norms of queries and keys and of the
// embedding that have no weights, and norms behind parts with an eps of their own.
constinit const Architecture kMuseGlimmerArchitecture = {
    .name = "MuseGlimmerForCausalLM",
    .description = "Muse Glimmer 30B",
    .defaults = kGlimmerDefaults,
    .decoder = {.places = {{{"model.", "lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .embedding_norm = "embed_norm",
                .ignored = kGlimmerVision,
                .layer = glimmer_layer,
                .norms = {.offset = 1},
                .embedding_norm_form = kUnitNorm,
                .last_norm_form = kPlainNorm},
    .text_config = true,
    .translate = translate_glimmer,
    .read = read_glimmer,
};

// The same with vision, of which only the text part is read.
constinit const Architecture kMuseGlimmerVisionArchitecture = {
    .name = "MuseGlimmerForConditionalGeneration",
    .description = "Muse Glimmer 30B with vision; its text part",
    .defaults = kGlimmerDefaults,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .embedding_norm = "embed_norm",
                .ignored = kGlimmerVision,
                .layer = glimmer_layer,
                .norms = {.offset = 1},
                .embedding_norm_form = kUnitNorm,
                .last_norm_form = kPlainNorm},
    .text_config = true,
    .translate = translate_glimmer,
    .read = read_glimmer,
};

}  // namespace foretoken
