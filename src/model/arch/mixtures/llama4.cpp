#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Weights multiply what enters the experts.
FeedForwardSpec llama4_feed_forward(const ModelConfig& config, const LayerConfig& layer) {
  if (!layer.experts) {
    GatedMlpSpec mlp = gated_mlp_of(config, layer);
    mlp.base = "feed_forward.";
    return mlp;
  }
  ExpertsSpec experts = experts_of(config);
  experts.weighs_input = true;
  experts.files = ExpertFiles::kFusedTurned;
  experts.base = "feed_forward.";
  experts.router = "router";
  experts.shared = "shared_expert.";
  return experts;
}

// Layers that know positions norm the heads of queries and keys, unless use_qk_norm is false; in
// the others late queries grow.
LayerSpec llama4_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  if (layer.rope && config.qk_norm) attention.qk_norm = QkNorm::kUnitScaled;
  attention.chunk = layer.rope ? config.attention_chunk : 0;
  if (!layer.rope) {
    const QueryGrowth& growth = config.query_growth;
    attention.query_scale = {growth.beta, static_cast<float>(growth.context), 1};
  }
  return pre_norm_layer(attention, llama4_feed_forward(config, layer));
}

// intermediate_size is that of experts, the shared one among them; dense layers have another.
// Chunks follow from the layers that know positions.
Status translate_llama4(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* inner = fields.find("intermediate_size")) {
    (*json)["moe_intermediate_size"] = *inner;
    (*json)["shared_expert_intermediate_size"] = *inner;
  }
  if (const auto* inner = fields.find("intermediate_size_mlp")) {
    (*json)["intermediate_size"] = *inner;
  }
  json->erase("layer_types");
  return {};
}

Status read_llama4(const ConfigFields& fields, ModelConfig* config) {
  bool grows = true;
  double beta = 0.1;
  config->attention_chunk = 8192;
  config->qk_norm = true;
  config->query_growth.context = 8192;
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  FT_RETURN_IF_ERROR(fields.read_flag("attn_temperature_tuning", &grows));
  FT_RETURN_IF_ERROR(fields.read_positive("attn_scale", &beta));
  FT_RETURN_IF_ERROR(fields.read_count("floor_scale", &config->query_growth.context));
  FT_RETURN_IF_ERROR(fields.read_count("attention_chunk_size", &config->attention_chunk));
  config->query_growth.beta = grows ? static_cast<float>(beta) : 0;
  config->experts.score = ExpertScore::kSigmoid;
  return read_mixture(fields, &config->experts, &config->layers);
}

constexpr const char* kLlama4Vision[] = {"vision_model.", "multi_modal_projector."};

constexpr const char* kLlama4Defaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "no_rope_layer_interval": 4,
        "num_local_experts": 16, "num_experts_per_tok": 1})";

}  // namespace

// Meta 2025: pairs of a head lie side by side, every fourth layer knows no positions. Those that
// know them see chunks of attention_chunk_size positions. Layers by their numbers in moe_layers, or
// every interleave_moe_layer_step-th, have experts.
constinit const Architecture kLlama4Architecture = {
    .name = "Llama4ForCausalLM",
    .description = "Llama 4",
    .defaults = kLlama4Defaults,
    .decoder = {.layer = llama4_layer},
    .text_config = true,
    .translate = translate_llama4,
    .read = read_llama4,
};

constinit const Architecture kLlama4ConditionalArchitecture = {
    .name = "Llama4ForConditionalGeneration",
    .description = "Llama 4 Scout and Maverick; their text part",
    .defaults = kLlama4Defaults,
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kLlama4Vision,
                .layer = llama4_layer},
    .text_config = true,
    .translate = translate_llama4,
    .read = read_llama4,
};

}  // namespace foretoken
