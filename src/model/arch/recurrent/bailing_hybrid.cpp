#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Kimi's delta attention with decays and gates that are made of whole rows.
LinearSpec bailing_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.shape.channel_decay = true;
  linear.files = LinearFiles::kEach;
  if (config.recurrent.lower_bound < 0) {
    linear.gates = LinearGates::kBounded;
    linear.lower_bound = config.recurrent.lower_bound;
  }
  linear.gate = NormGate::kSigmoid;
  linear.base = "attention.";
  linear.in_decay = "f_proj";
  linear.in_scale = "b_proj";
  linear.in_gate = "g_proj";
  linear.norm = "o_norm";
  linear.out = "dense";
  return linear;
}

LayerSpec bailing_hybrid_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.correction = "gate.expert_bias";
  const FeedForwardSpec part = experts_or_mlp(config, layer, experts);
  if (layer.recurrent) return pre_norm_layer(bailing_delta(config), part);
  LatentSpec latent = latent_of(config, layer);
  latent.base = "attention.";
  latent.o = "dense";
  latent.gate_proj = "g_proj";
  return pre_norm_layer(latent, part);
}

constexpr RenamedField kBailingHybridNames[] = {
    {"model_max_length", "max_position_embeddings"},
    {"num_expert_group", "n_group"},
    {"moe_renormalize", "norm_topk_prob"},
    {"num_shared_experts", "n_shared_experts"},
    {"num_mtp_layers", "num_nextn_predict_layers"},
    {"short_conv_kernel_size", "linear_conv_kernel_dim"}};

// Heads of both kinds of attention are as many; each layer_group_size-th layer has latents.
Status translate_bailing_hybrid(const ConfigFields& fields, Json* json) {
  take_renamed(fields, kBailingHybridNames, json);
  int32_t heads = 0, dim = 128, group = 6;
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  FT_RETURN_IF_ERROR(fields.read_count("head_dim", &dim));
  FT_RETURN_IF_ERROR(fields.read_count("layer_group_size", &group));
  for (const char* name : {"linear_num_key_heads", "linear_num_value_heads"}) {
    (*json)[name] = heads;
  }
  for (const char* name : {"linear_key_head_dim", "linear_value_head_dim"}) (*json)[name] = dim;
  json->erase("head_dim");
  const auto type_of = [&](int32_t i, int32_t) {
    return (i + 1) % group == 0 ? "full_attention" : "linear_attention";
  };
  return write_layer_types(fields, type_of, json);
}

Status read_lower_bound(const ConfigFields& fields, float* out) {
  bool bounded = true;
  FT_RETURN_IF_ERROR(fields.read_flag("kda_safe_gate", &bounded));
  const Json* bound = fields.find("kda_lower_bound");
  *out = bounded ? -5.0f : 0.0f;
  if (!bounded || bound == nullptr) return {};
  if (!bound->is_number() || *bound >= 0) return fields.wrong("kda_lower_bound", "below zero");
  *out = static_cast<float>(bound->get<double>());
  return {};
}

Status read_bailing_hybrid(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_lower_bound(fields, &config->recurrent.lower_bound));
  FT_RETURN_IF_ERROR(read_linear_sizes(fields, &config->recurrent));
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// inclusionAI 2026: Kimi's delta attention with bounded decays in five of six layers, latent
// attention with a gate of each head in the others, DeepSeek V3's mixtures.
constinit const Architecture kBailingHybridArchitecture = {
    .name = "BailingHybridForCausalLM",
    .description = "Ling 3",
    .defaults = R"({"max_position_embeddings": 262144, "rope_theta": 6000000.0,
                    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                    "v_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 512,
                    "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 8,
                    "topk_group": 4, "moe_intermediate_size": 768,
                    "routed_scaling_factor": 2.5, "first_k_dense_replace": 2})",
    .decoder = {.embedding = "word_embeddings", .layer = bailing_hybrid_layer},
    .mtp = {.output_norm = "final_layernorm", .chains_normed = true},
    .recurrent_type = "linear_attention",
    .translate = translate_bailing_hybrid,
    .read = read_bailing_hybrid,
};

}  // namespace foretoken
