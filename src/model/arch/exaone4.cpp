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

// Norms before both parts instead, and DeepSeek V3's mixtures.
LayerSpec exaone_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = experts_of(config);
  experts.correction = "e_score_correction_bias";
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
}

Status read_exaone_moe(const ConfigFields& fields, ModelConfig* config) {
  config->num_mtp_modules = 0;
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

constexpr const char* kExaone4Defaults =
    R"({"max_position_embeddings": 2048, "num_key_value_heads": 32, "sliding_window_pattern": 4})";

// A draft module, which is not read.
constexpr const char* kExaoneModules[] = {"mtp.", "model.mtp."};
constexpr const char* kExaoneVision[] = {"visual.", "model.visual."};

}  // namespace

// LG AI Research 2025: norms of what blocks add and none before them, norms of q and k; where some
// layers have a window, the others know no positions.
constinit const Architecture kExaone4Architecture = {
    .name = "Exaone4ForCausalLM",
    .description = "EXAONE 4.0",
    .defaults = kExaone4Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = exaone4_layer},
    .only_windows_turn = true,
    .translate = translate_exaone4,
};

// LG AI Research 2026: the same with vision, of which only the text part is read.
constinit const Architecture kExaone4_5Architecture = {
    .name = "Exaone4_5_ForConditionalGeneration",
    .description = "EXAONE 4.5; its text part",
    .defaults = kExaone4Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .ignored = kExaoneVision,
                .layer = exaone4_layer},
    .text_config = true,
    .only_windows_turn = true,
    .translate = translate_exaone4,
};

// LG AI Research 2026: mixtures behind the first layers.
constinit const Architecture kExaoneMoeArchitecture = {
    .name = "ExaoneMoeForCausalLM",
    .description = "K-EXAONE 236B-A23B",
    .defaults = R"({"max_position_embeddings": 2048, "num_key_value_heads": 32,
                    "sliding_window": 4096, "sliding_window_pattern": 4, "num_experts": 64,
                    "num_experts_per_tok": 8, "moe_intermediate_size": 1024,
                    "num_shared_experts": 1, "first_k_dense_replace": 1,
                    "routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.ignored = kExaoneModules, .layer = exaone_moe_layer},
    .only_windows_turn = true,
    .translate = translate_exaone4,
    .read = read_exaone_moe,
};

}  // namespace foretoken
