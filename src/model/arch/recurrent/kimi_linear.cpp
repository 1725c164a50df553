#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Delta networks whose channels decay each by itself; decays and gates pass few numbers.
LinearSpec kimi_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.shape.channel_decay = true;
  linear.files = LinearFiles::kEach;
  linear.decay_rank = linear.gate_rank = config.recurrent.key_dim;
  linear.gate = NormGate::kSigmoid;
  linear.base = "self_attn.";
  linear.in_decay = "f_b_proj";
  linear.in_scale = "b_proj";
  linear.in_gate = "g_b_proj";
  linear.norm = "o_norm";
  linear.out = "o_proj";
  return linear;
}

LayerSpec kimi_linear_layer(const ModelConfig& config, const LayerConfig& layer) {
  const FeedForwardSpec part = experts_or_mlp(config, layer, mixtral_experts_of(config));
  if (layer.recurrent) return pre_norm_layer(kimi_delta(config), part);
  return pre_norm_layer(latent_of(config, layer), part);
}

// Layers are counted from 1 in files.
Status mark_kimi_layers(const ConfigFields& fields, const Json& linear, Json* json) {
  if (fields.find("layer_types") != nullptr) return {};
  const auto attending = linear.find("full_attn_layers");
  if (attending == linear.end() || !attending->is_array()) {
    return fields.wrong("linear_attn_config", "an object with a list 'full_attn_layers'");
  }
  const auto type_of = [&](int32_t i, int32_t) {
    const bool attends = std::find(attending->begin(), attending->end(), i + 1) != attending->end();
    return attends ? "full_attention" : "linear_attention";
  };
  return write_layer_types(fields, type_of, json);
}

constexpr RenamedField kKimiNames[] = {{"model_max_length", "max_position_embeddings"},
                                       {"num_expert_group", "n_group"},
                                       {"moe_renormalize", "norm_topk_prob"},
                                       {"num_shared_experts", "n_shared_experts"}};
constexpr RenamedField kKimiSizes[] = {{"num_heads", "linear_num_value_heads"},
                                       {"head_dim", "linear_value_head_dim"},
                                       {"short_conv_kernel_size", "linear_conv_kernel_dim"}};
constexpr RenamedField kKimiOwnSizes[] = {{"linear_num_heads", "linear_num_value_heads"},
                                          {"linear_head_dim", "linear_value_head_dim"}};

Status translate_kimi_linear(const ConfigFields& fields, Json* json) {
  take_renamed(fields, kKimiNames, json);
  take_renamed(fields, kKimiOwnSizes, json);
  json->erase("head_dim");
  if (const Json* linear = fields.find("linear_attn_config")) {
    if (!linear->is_object()) return fields.wrong("linear_attn_config", "an object");
    take_renamed(ConfigFields(*linear, fields.where() + " (linear_attn_config)"), kKimiSizes, json);
    FT_RETURN_IF_ERROR(mark_kimi_layers(fields, *linear, json));
  }
  for (const auto& [queries, values] :
       {std::pair{"linear_num_key_heads", "linear_num_value_heads"},
        std::pair{"linear_key_head_dim", "linear_value_head_dim"}}) {
    if (json->contains(values)) (*json)[queries] = (*json)[values];
  }
  return fields.find("kv_lora_rank") != nullptr ? Status() : fields.missing("kv_lora_rank");
}

Status read_kimi_linear(const ConfigFields& fields, ModelConfig* config) {
  bool still = true;
  FT_RETURN_IF_ERROR(fields.read_flag("mla_use_nope", &still));
  if (still) {  // frequencies of zero turn nothing
    config->rope.full.type = RopeType::kLinear;
    config->rope.full.factor = std::numeric_limits<double>::infinity();
  }
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_linear_sizes(fields, &config->recurrent));
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// Moonshot AI 2025: Kimi's delta attention in three of four layers, latent attention without
// positions in the others, DeepSeek V3's mixtures.
constinit const Architecture kKimiLinearArchitecture = {
    .name = "KimiLinearForCausalLM",
    .description = "Kimi Linear",
    .defaults = R"({"max_position_embeddings": 1048576, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                    "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 1024,
                    "n_shared_experts": 1, "routed_scaling_factor": 2.446,
                    "first_k_dense_replace": 1, "linear_num_value_heads": 32,
                    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4})",
    .decoder = {.layer = kimi_linear_layer},
    .recurrent_type = "linear_attention",
    .translate = translate_kimi_linear,
    .read = read_kimi_linear,
};

}  // namespace foretoken
