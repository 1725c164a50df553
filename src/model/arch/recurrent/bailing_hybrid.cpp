#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "model/arch/alibi.h"
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
  if (layer.expert_limit > 0) {
    experts.activation = Activation::kClampedSilu;
    experts.clamp = clamp_behind_silu(layer.expert_limit);
  }
  if (layer.shared_limit > 0) experts.shared_clamp = clamp_behind_silu(layer.shared_limit);
  const FeedForwardSpec part = experts_or_mlp(config, layer, experts);
  if (layer.recurrent) return pre_norm_layer(bailing_delta(config), part);
  LatentSpec latent = latent_of(config, layer);
  latent.base = "attention.";
  latent.o = "dense";
  latent.gate_proj = "g_proj";
  latent.gates = config.head_gates ? HeadGates::kEachHead : HeadGates::kEachElement;
  return pre_norm_layer(latent, part);
}

// Lightning attention whose heads turn, with a rate for each head and layer.
LinearSpec bailing_lightning(const ModelConfig& config, const LayerConfig& layer) {
  const RecurrentConfig& own = config.recurrent;
  LinearSpec linear{.shape = {.key_heads = own.key_heads,
                              .value_heads = own.value_heads,
                              .key_dim = own.key_dim,
                              .value_dim = own.value_dim},
                    .inputs = config.hidden_size,
                    .gates = LinearGates::kFixed,
                    .q_scale = 1 / std::sqrt(static_cast<float>(own.key_dim)),
                    .turns = true,
                    .q_norm = config.qk_norm ? "query_layernorm" : nullptr,
                    .k_norm = config.qk_norm ? "key_layernorm" : nullptr,
                    .in_bias = config.attention_bias,
                    .out_bias = config.attention_out_bias,
                    .norm_groups = own.norm_groups,
                    .norm_own_weights = true,
                    .gate = NormGate::kSigmoid,
                    .files = LinearFiles::kApart,
                    .base = "attention.",
                    .in_qkv = "query_key_value",
                    .in_gate = "g_proj",
                    .decay_bias = nullptr,
                    .norm = "g_norm",
                    .out = "dense"};
  for (const float slope : alibi_slopes(own.value_heads)) {
    linear.fixed_rates.push_back(slope * layer.rate_scale);
  }
  return linear;
}

LayerSpec bailing_v2_5_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  if (config.experts.correction) experts.correction = "gate.expert_bias";
  const FeedForwardSpec part = experts_or_mlp(config, layer, experts);
  if (layer.recurrent) return pre_norm_layer(bailing_lightning(config, layer), part);
  LatentSpec latent = latent_of(config, layer);
  latent.base = "attention.";
  latent.o = "dense";
  return pre_norm_layer(latent, part);
}

constexpr RenamedField kBailingHybridNames[] = {
    {"model_max_length", "max_position_embeddings"},
    {"num_expert_group", "n_group"},
    {"moe_renormalize", "norm_topk_prob"},
    {"num_shared_experts", "n_shared_experts"},
    {"num_mtp_layers", "num_nextn_predict_layers"},
    {"short_conv_kernel_size", "linear_conv_kernel_dim"}};

// What files of the published code may ask for, and no published model does.
Status refuse_unbuilt(const ConfigFields& fields) {
  for (const char* name : {"use_kda_lora", "use_mla_nope", "up_proj_norm", "value_norm", "use_nGPT",
                           "scale_router_input", "use_bias", "use_qkv_bias", "pregate_inference"}) {
    bool asks = false;
    FT_RETURN_IF_ERROR(fields.read_flag(name, &asks));
    if (!asks) continue;
    return unsupported(fields.where() + ": " + name + " is not supported, as no published model " +
                       "of this family has it; use one of these");
  }
  bool whole = true;
  FT_RETURN_IF_ERROR(fields.read_flag("no_kda_lora", &whole));
  if (whole) return {};
  return unsupported(fields.where() + ": no_kda_lora false is not supported, as decays and gates " +
                     "of whole rows alone are read; use a published model of this family");
}

Status write_shared_width(const ConfigFields& fields, Json* json) {
  if (fields.find("moe_shared_expert_intermediate_size") == nullptr) return {};
  int32_t inner = 0, count = 1;
  FT_RETURN_IF_ERROR(fields.need_count("moe_shared_expert_intermediate_size", &inner));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_shared_experts", &count));
  (*json)["shared_expert_intermediate_size"] = int64_t{inner} * count;
  return {};
}

// Heads of both kinds of attention are as many; each layer_group_size-th layer has latents.
Status translate_bailing_hybrid(const ConfigFields& fields, Json* json) {
  take_renamed(fields, kBailingHybridNames, json);
  FT_RETURN_IF_ERROR(refuse_unbuilt(fields));
  FT_RETURN_IF_ERROR(write_shared_width(fields, json));
  int32_t heads = 0, dim = 128, group = 6;
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  // Where transformers saved the file, head_dim is qk_rope_head_dim's number.
  const bool is_saved = fields.find("linear_head_dim") != nullptr;
  FT_RETURN_IF_ERROR(fields.read_count(is_saved ? "linear_head_dim" : "head_dim", &dim));
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

// The layers behind the last whole group attend, too.
Status translate_bailing_v2_5(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"num_shared_experts", "n_shared_experts"},
                                     {"score_function", "scoring_func"},
                                     {"use_qkv_bias", "attention_bias"},
                                     {"use_bias", "attention_out_bias"}};
  take_renamed(fields, kNames, json);
  int32_t heads = 0, hidden = 0, dim = 0, group = 8;
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.read_count("layer_group_size", &group));
  dim = hidden / heads;
  FT_RETURN_IF_ERROR(fields.read_count("head_dim", &dim));
  (*json)["linear_key_head_dim"] = dim;
  json->erase("head_dim");
  FT_RETURN_IF_ERROR(write_shared_width(fields, json));
  const auto type_of = [&](int32_t i, int32_t num_layers) {
    const bool attends = (i + 1) % group == 0 || i >= num_layers / group * group;
    return attends ? "full_attention" : "linear_attention";
  };
  return write_layer_types(fields, type_of, json);
}

// What turns of a head is as wide in both kinds of attention, so that one table serves both.
Status check_turning(const ConfigFields& fields, const ModelConfig& config) {
  double share = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("partial_rotary_factor", &share));
  const auto turning = static_cast<int32_t>(config.recurrent.key_dim * share);
  if (turning == config.latent.rope_dim) return {};
  return unsupported(fields.where() + ": heads of linear attention turn by " +
                     std::to_string(turning) + " elements (partial_rotary_factor), and those of " +
                     "latent attention by " + std::to_string(config.latent.rope_dim) +
                     " (qk_rope_head_dim), which must be as many; correct the file");
}

Status read_bailing_v2_5(const ConfigFields& fields, ModelConfig* config) {
  bool silu = false;
  for (const char* name : {"linear_silu", "use_linear_silu"}) {
    FT_RETURN_IF_ERROR(fields.read_flag(name, &silu));
    if (!silu) continue;
    return unsupported(fields.where() + ": " + name + " is not supported, as no published model " +
                       "of this family has it; use one of these");
  }
  RecurrentConfig& linear = config->recurrent;
  linear.key_heads = linear.value_heads = config->num_heads;
  FT_RETURN_IF_ERROR(fields.need_count("linear_key_head_dim", &linear.key_dim));
  linear.value_dim = linear.key_dim;
  linear.norm_groups = 1;
  FT_RETURN_IF_ERROR(fields.read_count("group_norm_size", &linear.norm_groups));
  FT_RETURN_IF_ERROR(check_recurrent_sizes(fields, linear));
  FT_RETURN_IF_ERROR(check_turning(fields, *config));
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  const double depth = std::max(config->num_layers - 1, 1);
  for (int32_t i = 0; i < config->num_layers; ++i) {
    config->layers[static_cast<size_t>(i)].rate_scale =
        static_cast<float>(1 - (i - 1) / depth + 1e-5);
  }
  config->experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &config->experts, &config->layers));
  config->experts.groups = ExpertGroups::kBestTwo;
  return fields.read_flag("moe_router_enable_expert_bias", &config->experts.correction);
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

// Layers behind the end of a list have none.
Status read_swiglu_limits(const ConfigFields& fields, const char* name, float LayerConfig::* to,
                          std::vector<LayerConfig>* layers) {
  const Json* limits = fields.find(name);
  if (limits == nullptr) return {};
  const char* wanted = "a list with a number from 0 on, or null, for each layer";
  if (!limits->is_array()) return fields.wrong(name, wanted);
  for (size_t i = 0; i < std::min(limits->size(), layers->size()); ++i) {
    const Json& limit = (*limits)[i];
    if (limit.is_null()) continue;
    if (!limit.is_number() || limit < 0) return fields.wrong(name, wanted);
    (*layers)[i].*to = limit.get<float>();
  }
  return {};
}

// Gates of what latent attention leaves: one of each head, or of each element.
Status read_gate_grain(const ConfigFields& fields, bool* each_head) {
  const char* name = "gated_attention_proj_granularity_type";
  const Json* grain = fields.find(name);
  *each_head = grain == nullptr || *grain == "head_wise";
  if (*each_head || *grain == "element_wise") return {};
  return fields.wrong(name, "\"head_wise\" or \"element_wise\"");
}

Status read_bailing_hybrid(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_gate_grain(fields, &config->head_gates));
  FT_RETURN_IF_ERROR(read_swiglu_limits(fields, "expert_swiglu_limit_list",
                                        &LayerConfig::expert_limit, &config->layers));
  FT_RETURN_IF_ERROR(read_swiglu_limits(fields, "share_expert_swiglu_limit_list",
                                        &LayerConfig::shared_limit, &config->layers));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_lower_bound(fields, &config->recurrent.lower_bound));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
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

// inclusionAI 2026: lightning attention in all but each group's last layer, which has latent
// attention, DeepSeek V3's mixtures.
constinit const Architecture kBailingMoeV2_5Architecture = {
    .name = "BailingMoeV2_5ForCausalLM",
    .description = "Ling 2.5 and 2.6, Ring 2.5",
    .defaults = R"({"max_position_embeddings": 131072, "rope_theta": 6000000.0,
                    "partial_rotary_factor": 0.5, "use_qk_norm": true, "score_function": "sigmoid",
                    "moe_router_enable_expert_bias": true, "num_shared_experts": 1,
                    "group_norm_size": 8, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                    "qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts": 256,
                    "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
                    "moe_intermediate_size": 1024, "routed_scaling_factor": 2.5,
                    "first_k_dense_replace": 1})",
    .decoder = {.embedding = "word_embeddings", .layer = bailing_v2_5_layer},
    .mtp = {.output_norm = "final_layernorm", .chains_normed = true},
    .recurrent_type = "linear_attention",
    .translate = translate_bailing_v2_5,
    .read = read_bailing_v2_5,
};

}  // namespace foretoken
