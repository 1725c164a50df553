#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/rows/mix_depth.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Delta networks whose channels decay each by itself; decays and gates pass few numbers.
LinearSpec kimi_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.shape.channel_decay = true;
  linear.files = LinearFiles::kEach;
  if (config.recurrent.lower_bound < 0) {
    linear.gates = LinearGates::kBounded;
    linear.lower_bound = config.recurrent.lower_bound;
  }
  linear.decay_rank = config.recurrent.key_dim;
  linear.gate_rank = config.recurrent.whole_gates ? 0 : config.recurrent.key_dim;
  linear.gate = NormGate::kSigmoid;
  linear.base = "self_attn.";
  linear.in_decay = "f_b_proj";
  linear.in_scale = "b_proj";
  linear.in_gate = config.recurrent.whole_gates ? "g_proj" : "g_b_proj";
  linear.norm = "o_norm";
  linear.out = "o_proj";
  return linear;
}

FeedForwardSpec kimi_feed_forward(const ModelConfig& config, const LayerConfig& layer) {
  if (!layer.experts) {
    GatedMlpSpec mlp = gated_mlp_of(config, layer);
    mlp.clamp = config.experts.clamp;
    return mlp;
  }
  ExpertsSpec experts = mixtral_experts_of(config);
  experts.to_latent = "routed_expert_down_proj";
  experts.of_latent = "routed_expert_up_proj";
  if (config.experts.latent_norm) experts.latent_norm = "routed_expert_norm";
  return experts;
}

MixerSpec kimi_mixer(const ModelConfig& config, const LayerConfig& layer) {
  if (layer.recurrent) return kimi_delta(config);
  LatentSpec latent = latent_of(config, layer);
  if (config.latent.gated) {
    latent.gate_proj = "g_proj";
    latent.gates = HeadGates::kEachElement;
  }
  return latent;
}

LayerSpec kimi_linear_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = pre_norm_layer(kimi_mixer(config, layer), kimi_feed_forward(config, layer));
  spec.depth = {.exists = config.depth_block > 0,
                .blocks = layer.blocks_before,
                .begins_block = layer.begins_block};
  return spec;
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

// Kimi K3: latents of experts, numbers of their activation, gates, bounds of decays.
Status read_kimi_parts(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("routed_expert_hidden_size", &experts.latent));
  FT_RETURN_IF_ERROR(fields.read_flag("latent_moe_use_norm", &experts.latent_norm));
  FT_RETURN_IF_ERROR(fields.read_flag("mla_use_output_gate", &config->latent.gated));
  if (config->activation == Activation::kSitu) {
    double gates = 1, ups = 0;
    FT_RETURN_IF_ERROR(fields.read_positive("activation_situ_beta", &gates));
    FT_RETURN_IF_ERROR(fields.read_positive("activation_situ_linear_beta", &ups));
    experts.clamp = {.limit = static_cast<float>(gates), .up_limit = static_cast<float>(ups)};
  }
  const Json* linear = fields.find("linear_attn_config");
  if (linear == nullptr) return {};
  const ConfigFields own(*linear, fields.where() + " (linear_attn_config)");
  FT_RETURN_IF_ERROR(own.read_flag("use_full_rank_gate", &config->recurrent.whole_gates));
  const Json* bound = own.find("gate_lower_bound");
  if (bound == nullptr) return {};
  if (!bound->is_number() || *bound >= 0) return own.wrong("gate_lower_bound", "below zero");
  config->recurrent.lower_bound = static_cast<float>(bound->get<double>());
  return {};
}

// Where blocks of layers begin, whose residuals later layers read (Kimi K3).
Status mark_kimi_blocks(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_count_or_none("attn_res_block_size", &config->depth_block));
  if (config->depth_block == 0) return {};
  if (config->num_depth_blocks() > kMaxDepthBlocks) {
    return unsupported(fields.where() + ": " + std::to_string(config->num_depth_blocks()) +
                       " blocks of layers (attn_res_block_size) are not supported; the most are " +
                       std::to_string(kMaxDepthBlocks));
  }
  for (int32_t i = 0; i < config->num_layers; ++i) {
    LayerConfig& layer = config->layers[static_cast<size_t>(i)];
    layer.begins_block = i % config->depth_block == 0;
    layer.blocks_before = (i + config->depth_block - 1) / config->depth_block;
  }
  return {};
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
  FT_RETURN_IF_ERROR(read_kimi_parts(fields, config));
  FT_RETURN_IF_ERROR(mark_kimi_blocks(fields, config));
  return read_mixture(fields, &experts, &config->layers);
}

constexpr Architecture kimi_architecture(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults =
          R"({"max_position_embeddings": 1048576, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                    "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 1024,
                    "n_shared_experts": 1, "routed_scaling_factor": 2.446,
                    "first_k_dense_replace": 1, "linear_num_value_heads": 32,
                    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4})",
      .decoder = {.layer = kimi_linear_layer},
      .text_config = true,
      .recurrent_type = "linear_attention",
      .translate = translate_kimi_linear,
      .read = read_kimi_linear,
  };
}

}  // namespace

// Moonshot AI 2025: Kimi's delta attention in three of four layers, latent attention without
// positions in the others, DeepSeek V3's mixtures.
constinit const Architecture kKimiLinearArchitecture =
    kimi_architecture("KimiLinearForCausalLM", "Kimi Linear");

// Moonshot AI 2026: the same with bounded decays, gates behind attention, experts of narrow rows
// with bounded activations, and parts that read what earlier blocks of layers left.
constinit const Architecture kKimiK3Architecture =
    kimi_architecture("KimiK3ForConditionalGeneration", "Kimi K3; its text part");

}  // namespace foretoken
