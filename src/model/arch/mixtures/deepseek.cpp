#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/config/families.h"
#include "model/config/index_config.h"
#include "model/config/missing_parts.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Latent attention, then a dense MLP in the first layers and a mixture in the others.
LayerSpec deepseek_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(latent_of(config, layer),
                        experts_or_mlp(config, layer, experts_of(config)));
}

// An indexer that chooses positions is for V3, V3.2 and GLM 5.
Status refuse_sparse(const ConfigFields& fields, nlohmann::json*) {
  if (fields.find("index_topk") != nullptr) return refuse_parts(kSparseAttention, fields.where());
  return fields.find("kv_lora_rank") != nullptr ? Status() : fields.missing("kv_lora_rank");
}

Status read_deepseek_v2(const ConfigFields& fields, ModelConfig* config) {
  config->experts.top_k = 6;  // of both published models
  FT_RETURN_IF_ERROR(read_mixture(fields, &config->experts, &config->layers));
  // Files have groups that this way of choosing does not look at.
  const nlohmann::json* method = fields.find("topk_method");
  if (method != nullptr && *method != "greedy") return {};
  config->experts.num_groups = config->experts.top_groups = 1;
  return {};
}

constexpr const char* kDeepseekV3Defaults =
    R"({"max_position_embeddings": 4096, "first_k_dense_replace": 3, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 8, "topk_group": 4,
        "num_experts_per_tok": 8, "routed_scaling_factor": 2.5, "norm_topk_prob": true,
        "n_shared_experts": 1})";

// What a mixture adds is normed behind it.
LayerSpec axk1_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = deepseek_layer(config, layer);
  if (layer.experts) spec.feed_forward_post_norm = "post_mlp_layernorm";
  return spec;
}

// Files that name another way of choosing than V3's have no correction of scores.
Status translate_axk1(const ConfigFields& fields, nlohmann::json* json) {
  const auto method = json->find("topk_method");
  if (method != json->end() && *method != "noaux_tc") {
    json->erase("topk_method");
    (*json)["score_correction"] = false;
  }
  return refuse_sparse(fields, json);
}

constexpr const char* kKimiVision[] = {"vision_tower.", "mm_projector.", "multi_modal_projector."};

Status read_deepseek_v3(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

// V3.2's form, by which some files of V3's name go, too.
Status read_sparse(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_deepseek_v3(fields, config));
  FT_ASSIGN_OR_RETURN(config->latent.index, read_index_config(fields, config->latent.rope_dim));
  if (!config->latent.index.exists()) return {};
  return read_index_sharing(fields, &config->layers);
}

Status need_latents(const ConfigFields& fields, nlohmann::json*) {
  return fields.find("kv_lora_rank") != nullptr ? Status() : fields.missing("kv_lora_rank");
}

// Files name the indexer where others say how a layer attends; without one nothing is left to say.
Status translate_sparse(const ConfigFields& fields, nlohmann::json* json) {
  if (fields.find("index_topk") == nullptr) return fields.missing("index_topk");
  const auto types = json->find("layer_types");
  const bool are_sparse =
      types != json->end() && types->is_array() &&
      std::all_of(types->begin(), types->end(), [](const nlohmann::json& type) {
        return type == "deepseek_sparse_attention" || type == "indexed_attention";
      });
  if (are_sparse) json->erase("layer_types");
  return need_latents(fields, json);
}

Status read_axk1(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_deepseek_v3(fields, config));
  return fields.read_flag("score_correction", &config->experts.correction);
}

constexpr Architecture kimi_with_vision(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = kDeepseekV3Defaults,
      .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                              {"model.language_model.", "lm_head.weight"}}},
                  .ignored = kKimiVision,
                  .layer = deepseek_layer},
      .text_config = true,
      .translate = refuse_sparse,
      .read = read_deepseek_v3,
  };
}

// The norm of the first layer, which has no mixture, is not applied.
constexpr const char* kAxk1Unused[] = {"model.layers.0.post_mlp_layernorm."};

}  // namespace

// DeepSeek-AI 2024.
constinit const Architecture kDeepseekV2Architecture = {
    .name = "DeepseekV2ForCausalLM",
    .description = "DeepSeek V2, V2 Lite and Coder V2",
    .defaults = R"({"max_position_embeddings": 2048, "first_k_dense_replace": 0,
                    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                    "norm_topk_prob": false, "n_shared_experts": 2})",
    .decoder = {.layer = deepseek_layer},
    .translate = refuse_sparse,
    .read = read_deepseek_v2,
};

// DeepSeek-AI 2024 and 2025. Files of V3 and R1 bring a module that predicts the token after next.
constinit const Architecture kDeepseekV3Architecture = {
    .name = "DeepseekV3ForCausalLM",
    .description = "DeepSeek V3 and R1, Kimi K2, with their MTP modules as drafters",
    .defaults = kDeepseekV3Defaults,
    .decoder = {.layer = deepseek_layer},
    .translate = need_latents,
    .read = read_sparse,
};

// DeepSeek-AI 2025: V3's blocks, with an indexer in each.
constinit const Architecture kDeepseekV32Architecture = {
    .name = "DeepseekV32ForCausalLM",
    .description = "DeepSeek V3.2 (sparse attention), with its MTP module as a drafter",
    .defaults = kDeepseekV3Defaults,
    .decoder = {.layer = deepseek_layer},
    .translate = translate_sparse,
    .read = read_sparse,
};

// Z.ai 2026: the same, with indexers that several layers may share.
constinit const Architecture kGlmMoeDsaArchitecture = {
    .name = "GlmMoeDsaForCausalLM",
    .description = "GLM 5, 5.1 and 5.2 (sparse attention), with their MTP modules as drafters",
    .defaults = R"({"max_position_embeddings": 202752, "first_k_dense_replace": 3,
                    "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
                    "n_group": 1, "topk_group": 1, "num_experts_per_tok": 8,
                    "routed_scaling_factor": 2.5, "norm_topk_prob": true,
                    "n_shared_experts": 1, "rms_norm_eps": 1e-5,
                    "indexer_rope_interleave": true})",
    .decoder = {.layer = deepseek_layer},
    .translate = translate_sparse,
    .read = read_sparse,
};

// Moonshot AI 2026 and 2025: V3's blocks behind a vision tower; its text part.
constinit const Architecture kKimiK25Architecture = kimi_with_vision(
    "KimiK25ForConditionalGeneration", "Kimi K2.5 and later with vision; their text part");
constinit const Architecture kKimiVlArchitecture =
    kimi_with_vision("KimiVLForConditionalGeneration", "Kimi VL A3B; its text part");

// Z.ai 2026: V3's blocks.
constinit const Architecture kGlm4MoeLiteArchitecture = {
    .name = "Glm4MoeLiteForCausalLM",
    .description = "GLM 4.7 Flash, with its MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 202752, "first_k_dense_replace": 1,
                    "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
                    "n_group": 1, "topk_group": 1, "num_experts_per_tok": 4,
                    "routed_scaling_factor": 1.8, "norm_topk_prob": true,
                    "n_shared_experts": 1, "rms_norm_eps": 1e-5})",
    .decoder = {.layer = deepseek_layer},
    .translate = refuse_sparse,
    .read = read_deepseek_v3,
};

// Sarvam AI 2026: V3's blocks.
constinit const Architecture kSarvamMlaArchitecture = {
    .name = "SarvamMLAForCausalLM",
    .description = "Sarvam 105B",
    .defaults = R"({"max_position_embeddings": 131072, "first_k_dense_replace": 1,
                    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                    "n_group": 1, "topk_group": 1, "num_experts_per_tok": 8,
                    "routed_scaling_factor": 2.5, "norm_topk_prob": true, "n_shared_experts": 1})",
    .decoder = {.layer = deepseek_layer},
    .translate = refuse_sparse,
    .read = read_deepseek_v3,
};

// SK Telecom 2026: V3's blocks, with a norm behind the mixtures.
constinit const Architecture kAxk1Architecture = {
    .name = "AXK1ForCausalLM",
    .description = "A.X K1",
    .defaults = R"({"max_position_embeddings": 131072, "first_k_dense_replace": 1,
                    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                    "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8,
                    "routed_scaling_factor": 2.5, "norm_topk_prob": true, "n_shared_experts": 1})",
    .decoder = {.ignored = kAxk1Unused, .layer = axk1_layer},
    .translate = translate_axk1,
    .read = read_axk1,
};

// Tencent 2025: V3's attention in a dense model.
constinit const Architecture kYoutuArchitecture = {
    .name = "YoutuForCausalLM",
    .description = "Youtu LLM 2B",
    .defaults = R"({"max_position_embeddings": 131072, "qk_nope_head_dim": 128,
                    "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": true})",
    .decoder = {.layer = deepseek_layer},
    .translate = refuse_sparse,
};

}  // namespace foretoken
