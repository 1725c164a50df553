#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/config/index_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec minimax_m3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  ExpertsSpec experts = mixtral_experts_of(config);
  experts.activation = Activation::kClampedSilu;
  experts.shared_clamp = config.experts.clamp;
  experts.correction = config.experts.correction ? "e_score_correction_bias" : nullptr;
  if (layer.experts) return pre_norm_layer(attention, experts);
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.activation = Activation::kClampedSilu;
  mlp.clamp = config.experts.clamp;
  return pre_norm_layer(attention, mlp);
}

// What transformers writes says in other fields which layers choose blocks, and how.
void take_listed_indexers(const ConfigFields& fields, Json* json) {
  const auto types = json->find("layer_types");
  if (types == json->end() || !types->is_array()) return;
  Json chooses = Json::array();
  for (const Json& type : *types) chooses.push_back(type == "minimax_m3_sparse" ? 1 : 0);
  json->erase("layer_types");
  if (fields.find("sparse_attention_config") != nullptr) return;
  if (std::find(chooses.begin(), chooses.end(), 1) == chooses.end()) return;
  constexpr RenamedField kNames[] = {{"index_n_heads", "sparse_num_index_heads"},
                                     {"index_head_dim", "sparse_index_dim"},
                                     {"index_block_size", "sparse_block_size"},
                                     {"index_topk_blocks", "sparse_topk_blocks"},
                                     {"index_local_blocks", "sparse_local_block"}};
  Json own = {{"sparse_attention_freq", std::move(chooses)}};
  for (const RenamedField& field : kNames) {
    if (const Json* value = fields.find(field.own)) own[field.common] = *value;
  }
  (*json)["sparse_attention_config"] = std::move(own);
}

Status translate_minimax_m3(const ConfigFields& fields, Json* json) {
  if (json->value("hidden_act", Json()) == "swigluoai") (*json)["hidden_act"] = "silu";
  const Json taken = *json;
  take_listed_indexers(ConfigFields(taken, fields.where()), json);
  if (fields.find("rotary_dim") == nullptr || fields.find("head_dim") == nullptr) return {};
  int32_t turning = 0, dim = 0;
  FT_RETURN_IF_ERROR(fields.need_count("rotary_dim", &turning));
  FT_RETURN_IF_ERROR(fields.need_count("head_dim", &dim));
  (*json)["partial_rotary_factor"] = static_cast<double>(turning) / dim;
  return {};
}

// What no published model asks for.
Status check_minimax_m3(const ConfigFields& fields) {
  bool gemma = true, gated = false;
  FT_RETURN_IF_ERROR(fields.read_flag("use_gemma_norm", &gemma));
  FT_RETURN_IF_ERROR(fields.read_flag("attention_output_gate", &gated));
  const Json* norm = fields.find("qk_norm_type");
  const bool by_head = norm == nullptr || *norm == "per_head";
  if (gemma && !gated && by_head) return {};
  const char* name = !gemma  ? "use_gemma_norm false"
                     : gated ? "attention_output_gate true"
                             : "a qk_norm_type other than per_head";
  return unsupported(fields.where() + ": " + name +
                     " is not supported; use a model like MiniMax M3");
}

Status read_minimax_m3(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_minimax_m3(fields));
  ExpertConfig& experts = config->experts;
  double limit = experts.clamp.limit, alpha = experts.clamp.alpha;
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_limit", &limit));
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_alpha", &alpha));
  experts.clamp.limit = experts.clamp.up_limit = static_cast<float>(limit);
  experts.clamp.alpha = static_cast<float>(alpha);
  experts.score = ExpertScore::kSigmoid;
  experts.correction = true;
  experts.normalised = true;
  config->qk_norm = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_routing_bias", &experts.correction));
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  int32_t dense = config->intermediate_size;
  FT_RETURN_IF_ERROR(fields.read_count("dense_intermediate_size", &dense));
  for (LayerConfig& layer : config->layers) {
    if (!layer.experts) layer.intermediate_size = dense;
  }
  FT_ASSIGN_OR_RETURN(config->block_index,
                      read_block_index(fields, config->num_kv_heads, config->rope.full.rotary_dim,
                                       &config->layers));
  return {};
}

constexpr const char* kMinimaxModules[] = {"model.mtp."};
constexpr const char* kMinimaxVision[] = {"vision_tower.",       "multi_modal_projector.",
                                          "patch_merge_mlp.",    "language_model.model.mtp.",
                                          "model.vision_tower.", "model.multi_modal_projector."};

constexpr const char* kMinimaxM3Defaults =
    R"({"max_position_embeddings": 524288, "num_key_value_heads": 4, "head_dim": 128,
        "rope_theta": 5000000.0, "rotary_dim": 64, "num_experts_per_tok": 4,
        "num_local_experts": 128, "routed_scaling_factor": 2.0})";

}  // namespace

// MiniMax 2026: grouped-query attention that in most layers sees blocks of positions that an
// indexer chooses, heads that turn in part, and a mixture behind the first layers.
constinit const Architecture kMinimaxM3Architecture = {
    .name = "MiniMaxM3ForCausalLM",
    .description = "MiniMax M3 (sparse attention)",
    .defaults = kMinimaxM3Defaults,
    .decoder = {.ignored = kMinimaxModules, .layer = minimax_m3_layer, .norms = {.offset = 1}},
    .translate = translate_minimax_m3,
    .read = read_minimax_m3,
};

// The same around a vision tower; its text part.
constinit const Architecture kMinimaxM3VlArchitecture = {
    .name = "MiniMaxM3SparseForConditionalGeneration",
    .description = "MiniMax M3 with vision; its text part",
    .defaults = kMinimaxM3Defaults,
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kMinimaxVision,
                .layer = minimax_m3_layer,
                .norms = {.offset = 1}},
    .text_config = true,
    .translate = translate_minimax_m3,
    .read = read_minimax_m3,
};

}  // namespace foretoken
