#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/experts/expert_lists.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// A layer of the file is two here, the first with the mixture whose sum the second adds.
LayerSpec longcat_layer(const ModelConfig& config, const LayerConfig& layer) {
  const bool first = layer.part == 0;
  LatentSpec attention = latent_of(config, layer);
  attention.base = first ? "self_attn.0." : "self_attn.1.";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.base = first ? "mlps.0." : "mlps.1.";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = first ? "input_layernorm.0" : "input_layernorm.1";
  spec.feed_forward_norm = first ? "post_attention_layernorm.0" : "post_attention_layernorm.1";
  spec.joins_shortcut = !first;
  if (!first) return spec;
  ExpertsSpec experts = experts_of(config);
  experts.router = "router.classifier";
  experts.correction = "router.e_score_correction_bias";
  spec.shortcut = experts;
  return spec;
}

// Of the draft module, which has one attention and no mixture.
LayerSpec longcat_module(const ModelConfig& config, const LayerConfig& layer) {
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.base = "transformer_layer.mlp.";
  return pre_norm_layer(latent_of(config, layer), mlp);
}

Status translate_longcat(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"ffn_hidden_size", "intermediate_size"},
                                     {"expert_ffn_hidden_size", "moe_intermediate_size"},
                                     {"moe_topk", "num_experts_per_tok"}};
  take_renamed(fields, kNames, json);
  int32_t layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_layers", &layers));
  (*json)["num_hidden_layers"] = 2 * int64_t{layers};
  return {};
}

// Parts that no published file differs in.
Status check_form(const ConfigFields& fields, const ModelConfig& config) {
  const Json* type = fields.find("zero_expert_type");
  bool biased = false, scales_queries = true, scales_keys = true;
  FT_RETURN_IF_ERROR(fields.read_flag("router_bias", &biased));
  FT_RETURN_IF_ERROR(fields.read_flag("mla_scale_q_lora", &scales_queries));
  FT_RETURN_IF_ERROR(fields.read_flag("mla_scale_kv_lora", &scales_keys));
  const bool fits = (type == nullptr || *type == "identity") && !biased && scales_queries &&
                    scales_keys && config.latent.exists() && config.latent.q_rank > 0;
  if (fits) return {};
  return unsupported(fields.where() +
                     ": LongCat Flash with a zero_expert_type other than identity, with "
                     "router_bias, without mla_scale_q_lora and mla_scale_kv_lora, or without "
                     "q_lora_rank and kv_lora_rank is not supported; use a model like the "
                     "published ones");
}

Status read_longcat(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_form(fields, *config));
  ExpertConfig& experts = config->experts;
  experts.correction = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("zero_expert_num", &experts.zero_count));
  if (experts.count + experts.zero_count > kMaxExperts) {
    return fields.wrong("zero_expert_num", "a number that leaves at most 1024 experts");
  }
  for (size_t i = 0; i < config->layers.size(); ++i) {
    config->layers[i].part = static_cast<int32_t>(i % 2);
    config->layers[i].experts = i % 2 == 0;
  }
  const double hidden = config->hidden_size;
  config->attention_scale *= static_cast<float>(std::sqrt(hidden / config->latent.q_rank));
  config->latent.kv_scale = static_cast<float>(std::sqrt(hidden / config->latent.kv_rank));
  return {};
}

// The draft module in the same files; draft_head.h reads it.
constexpr const char* kLongcatModules[] = {"model.mtp."};

}  // namespace

// Meituan 2025: latent attention twice a layer, and a mixture on a shortcut around the second,
// whose router may choose experts that compute nothing.
constinit const Architecture kLongcatFlashArchitecture = {
    .name = "LongcatFlashForCausalLM",
    .description = "LongCat Flash, with its MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "rope_theta": 10000000.0, "zero_expert_num": 256, "moe_topk": 12,
                    "routed_scaling_factor": 6.0})",
    .decoder = {.layers_each = 2, .ignored = kLongcatModules, .layer = longcat_layer},
    .mtp = {.layers = "mtp.layers.",
            .counts_on = false,
            .embed_norm = "enorm.m",
            .state_norm = "hnorm.m",
            .output_norm = "norm",
            .chains_normed = true,
            .together = "mtp.",
            .count = 1,
            .layer = longcat_module},
    .translate = translate_longcat,
    .read = read_longcat,
};

}  // namespace foretoken
