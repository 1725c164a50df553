#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Lightning attention (Qin et al. 2024): each head forgets at a rate of its own, which falls from
// layer to layer.
LinearSpec lightning_of(const ModelConfig& config, const LayerConfig& layer) {
  LinearSpec linear{.shape = {.key_heads = config.num_heads,
                              .value_heads = config.num_heads,
                              .key_dim = config.head_dim,
                              .value_dim = config.head_dim},
                    .inputs = config.hidden_size,
                    .gates = LinearGates::kFixed,
                    .silu = true,
                    .norm_groups = 1,
                    .norm_own_weights = true,
                    .gate = NormGate::kSigmoid,
                    .norm_eps = 1e-6f,  // whatever config.json says of others
                    .files = LinearFiles::kByHead,
                    .base = "self_attn.",
                    .in_qkv = "qkv_proj",
                    .in_gate = "output_gate",
                    .decay_bias = nullptr};
  linear.factors.out = config.linear_out_scale;
  for (int32_t head = 1; head <= config.num_heads; ++head) {
    const double rate = std::exp2(-8.0 * head / config.num_heads);
    linear.fixed_rates.push_back(static_cast<float>(rate * layer.rate_scale));
  }
  return linear;
}

LayerSpec minimax_layer(const ModelConfig& config, const LayerConfig& layer) {
  const ExpertsSpec experts = mixtral_experts_of(config);
  const FeedForwardSpec part = experts_or_mlp(config, layer, experts);
  LayerSpec spec = layer.recurrent ? pre_norm_layer(lightning_of(config, layer), part)
                                   : pre_norm_layer(gqa_of(config, layer), part);
  spec.norms_residual = config.norms_residual;
  spec.mixer_residual_scale =
      layer.recurrent ? config.linear_residual_scale : config.attention_residual_scale;
  spec.feed_forward_residual_scale = config.mlp_residual_scale;
  return spec;
}

// 0: lightning attention, 1: attention.
Status mark_minimax_layers(const ConfigFields& fields, Json* json) {
  if (fields.find("layer_types") != nullptr) return {};
  const char* name =
      fields.find("attn_type_list") != nullptr ? "attn_type_list" : "decoder_attention_types";
  const Json* list = fields.find(name);
  if (list == nullptr) {
    const auto type_of = [](int32_t i, int32_t) {
      return i % 2 == 0 ? "full_attention" : "linear_attention";
    };
    return write_layer_types(fields, type_of, json);
  }
  if (!list->is_array()) return fields.wrong(name, "a list of 0 and 1");
  Json types = Json::array();
  for (const Json& type : *list) {
    if (type != 0 && type != 1) return fields.wrong(name, "a list of 0 and 1");
    types.push_back(type == 0 ? "linear_attention" : "full_attention");
  }
  (*json)["layer_types"] = std::move(types);
  return {};
}

constexpr RenamedField kFactorNames[] = {
    {"layernorm_full_attention_alpha", "full_attn_alpha_factor"},
    {"layernorm_full_attention_beta", "full_attn_beta_factor"},
    {"layernorm_linear_attention_alpha", "linear_attn_alpha_factor"},
    {"layernorm_linear_attention_beta", "linear_attn_beta_factor"},
    {"layernorm_mlp_alpha", "mlp_alpha_factor"},
    {"layernorm_mlp_beta", "mlp_beta_factor"}};

Status translate_minimax(const ConfigFields& fields, Json* json) {
  take_renamed(fields, kFactorNames, json);
  FT_RETURN_IF_ERROR(mark_minimax_layers(fields, json));
  if (fields.find("rotary_dim") == nullptr || fields.find("head_dim") == nullptr) return {};
  int32_t turning = 0, dim = 0;
  FT_RETURN_IF_ERROR(fields.need_count("rotary_dim", &turning));
  FT_RETURN_IF_ERROR(fields.need_count("head_dim", &dim));
  (*json)["partial_rotary_factor"] = static_cast<double>(turning) / dim;
  return {};
}

// Of one expert that all rows take beside the others: a number, or one for each layer.
Status refuse_shared(const ConfigFields& fields) {
  const Json* sizes = fields.find("shared_intermediate_size");
  if (sizes == nullptr) return {};
  const Json list = sizes->is_array() ? *sizes : Json::array({*sizes});
  for (const Json& size : list) {
    if (size == 0) continue;
    return unsupported(fields.where() +
                       ": shared_intermediate_size is not supported, as no published model of "
                       "this family shares an expert; use one of these");
  }
  return {};
}

struct MinimaxFactor {
  const char* name;
  float* to;
};

Status read_minimax(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(refuse_shared(fields));
  config->norms_residual = true;
  FT_RETURN_IF_ERROR(fields.read_flag("postnorm", &config->norms_residual));
  ExpertConfig& experts = config->experts;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  const MinimaxFactor factors[] = {{"full_attn_alpha_factor", &config->attention_residual_scale},
                                   {"full_attn_beta_factor", &config->attention_out_scale},
                                   {"linear_attn_alpha_factor", &config->linear_residual_scale},
                                   {"linear_attn_beta_factor", &config->linear_out_scale},
                                   {"mlp_alpha_factor", &config->mlp_residual_scale},
                                   {"mlp_beta_factor", &experts.scale}};
  for (const MinimaxFactor& factor : factors) {
    double number = *factor.to;
    FT_RETURN_IF_ERROR(fields.read_positive(factor.name, &number));
    *factor.to = static_cast<float>(number);
  }
  if (config->head_dim > kMaxLinearKeyDim) {
    return unsupported(fields.where() + ": heads of " + std::to_string(config->head_dim) +
                       " elements are not supported in lightning attention; the most are " +
                       std::to_string(kMaxLinearKeyDim));
  }
  const size_t num_layers = config->layers.size();
  for (size_t i = 0; i < num_layers; ++i) {
    const double depth = static_cast<double>(i) / (static_cast<double>(num_layers) - 1.0 + 1e-5);
    config->layers[i].rate_scale = static_cast<float>(1.0 - depth + 1e-5);
  }
  return {};
}

constexpr const char* kMinimaxDefaults =
    R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0, "num_local_experts": 8, "num_experts_per_tok": 2})";

constexpr Architecture minimax_architecture(const char* name, const char* description) {
  return {.name = name,
          .description = description,
          .defaults = kMinimaxDefaults,
          .decoder = {.layer = minimax_layer},
          .recurrent_type = "linear_attention",
          .translate = translate_minimax,
          .read = read_minimax};
}

}  // namespace

// MiniMax 2025: lightning attention in seven of eight layers, Mixtral's mixtures; what norms leave
// is the residual.
constinit const Architecture kMinimaxArchitecture =
    minimax_architecture("MiniMaxForCausalLM", "MiniMax Text 01 and M1, in transformers' form");

constinit const Architecture kMinimaxText01Architecture =
    minimax_architecture("MiniMaxText01ForCausalLM", "MiniMax Text 01");

constinit const Architecture kMinimaxM1Architecture =
    minimax_architecture("MiniMaxM1ForCausalLM", "MiniMax M1");

}  // namespace foretoken
