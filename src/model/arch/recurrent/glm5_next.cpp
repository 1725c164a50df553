#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "model/config/index_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// What turns of latents in the place of nothing: zeros, which kernels for latents want.
constexpr int32_t kStillDim = 64;

// Kimi's delta attention with bounded decays.
LinearSpec glm5_delta(const ModelConfig& config) {
  LinearSpec linear = gated_delta_of(config);
  linear.shape.channel_decay = true;
  linear.files = LinearFiles::kEach;
  if (config.recurrent.lower_bound < 0) {
    linear.gates = LinearGates::kBounded;
    linear.lower_bound = config.recurrent.lower_bound;
  }
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

// Delta networks, or latent attention without positions to what an indexer chooses; gates of all
// MLPs are cut, and parts read four streams.
LayerSpec glm5_next_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.activation = Activation::kClampedSilu;
  experts.shared_clamp = experts.clamp;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.activation = Activation::kClampedSilu;
  mlp.clamp = config.experts.clamp;
  const FeedForwardSpec part = layer.experts ? FeedForwardSpec(experts) : FeedForwardSpec(mlp);
  LatentSpec latent = latent_of(config, layer);
  latent.still = true;
  latent.norm_eps = config.rms_norm_eps;
  LayerSpec spec =
      layer.recurrent ? pre_norm_layer(glm5_delta(config), part) : pre_norm_layer(latent, part);
  spec.hyper = config.hyper;
  return spec;
}

// Of a draft module, which has no streams. Its rows see all positions, as its indexer would choose
// them where there are no more than index_topk: keys of several positions have states, which
// modules do not keep, and drafts are verified.
LayerSpec glm5_next_module(const ModelConfig& config, const LayerConfig& layer) {
  LayerConfig own = layer;
  own.experts = true;
  LayerSpec spec = glm5_next_layer(config, own);
  std::get<LatentSpec>(spec.mixer).index = {};
  return spec;
}

constexpr RenamedField kGlm5Sizes[] = {{"num_heads", "linear_num_value_heads"},
                                       {"head_dim", "linear_value_head_dim"},
                                       {"short_conv_kernel_size", "linear_conv_kernel_dim"}};
constexpr RenamedField kGlm5OwnSizes[] = {{"linear_num_heads", "linear_num_value_heads"},
                                          {"linear_head_dim", "linear_value_head_dim"}};

// Sizes of the delta networks where the file has them apart. A bound of null is none, unless gates
// are said to be safe, as they are where nothing says so.
Status take_glm5_delta(const ConfigFields& fields, Json* json) {
  const Json* linear = fields.find("linear_attn_config");
  if (linear == nullptr) return {};
  if (!linear->is_object()) return fields.wrong("linear_attn_config", "an object");
  const ConfigFields own = fields.of(*linear, "linear_attn_config");
  take_renamed(own, kGlm5Sizes, json);
  bool safe = true;
  FT_RETURN_IF_ERROR(own.read_flag("safe_gate", &safe));
  Json& bound = (*json)["linear_lower_bound"];
  if (const auto said = linear->find("gate_lower_bound"); said != linear->end()) bound = *said;
  if (safe && bound.is_null()) bound = -5.0;
  return {};
}

Status translate_glm5_next(const ConfigFields& fields, Json* json) {
  for (const char* name : {"q_lora_rank", "kv_lora_rank", "index_topk"}) {
    if (fields.find(name) == nullptr) return fields.missing(name);
  }
  const Json* turning = fields.find("qk_rope_head_dim");
  if (turning != nullptr && *turning != 0) {
    return unsupported(fields.where() + ": qk_rope_head_dim " + turning->dump().substr(0, 80) +
                       " is not supported; supported: 0, as latent attention of this family has "
                       "no positions");
  }
  (*json)["qk_rope_head_dim"] = kStillDim;
  json->erase("head_dim");
  take_renamed(fields, kGlm5OwnSizes, json);
  FT_RETURN_IF_ERROR(take_glm5_delta(fields, json));
  for (const auto& [queries, values] :
       {std::pair{"linear_num_key_heads", "linear_num_value_heads"},
        std::pair{"linear_key_head_dim", "linear_value_head_dim"}}) {
    if (json->contains(values)) (*json)[queries] = (*json)[values];
  }
  const auto type_of = [](int32_t i, int32_t) {
    return i % 4 == 3 ? "full_attention" : "linear_attention";
  };
  FT_RETURN_IF_ERROR(write_layer_types(fields, type_of, json));
  Json& types = (*json)["layer_types"];
  if (!types.is_array()) return {};
  for (Json& type : types) {
    for (const char* sparse : {"indexed_attention", "deepseek_sparse_attention"}) {
      if (type == sparse) type = "full_attention";
    }
  }
  return {};
}

Status read_glm5_streams(const ConfigFields& fields, HyperConfig* out) {
  double eps = 1e-6;
  FT_RETURN_IF_ERROR(fields.need_count("hc_mult", &out->count));
  FT_RETURN_IF_ERROR(fields.need_count("hc_sinkhorn_iters", &out->rounds));
  FT_RETURN_IF_ERROR(fields.read_positive("hc_eps", &eps));
  out->eps = static_cast<float>(eps);
  out->of_end = nullptr;
  if (out->count >= 2 && out->count <= kMaxHyperStreams) return {};
  return unsupported(fields.where() + ": hc_mult " + std::to_string(out->count) +
                     " is not supported; supported: 2 to " + std::to_string(kMaxHyperStreams));
}

// Layers whose keys have no indexer of their own read the choice of the last one that has.
Status read_glm5_index(const ConfigFields& fields, ModelConfig* config) {
  IndexConfig& index = config->latent.index;
  FT_ASSIGN_OR_RETURN(index, read_index_config(fields, 0));
  FT_RETURN_IF_ERROR(fields.read_count("index_kpool", &index.pool));
  bool tail = true;
  FT_RETURN_IF_ERROR(fields.read_flag("index_kpool_always_select_tail", &tail));
  if (index.pool == 1 || !tail || index.top % index.pool != 0) {
    return unsupported(fields.where() +
                       ": an index_kpool of 1, or that does not divide index_topk, and "
                       "index_kpool_always_select_tail false are not supported; use a model like "
                       "GLM 5.3 Flash");
  }
  index.top /= index.pool;
  FT_RETURN_IF_ERROR(read_index_sharing(fields, &config->layers));
  for (const LayerConfig& layer : config->layers) {
    if (layer.recurrent) continue;
    return layer.shares_index
               ? fields.wrong("indexer_types", "\"full\" in the first layer that attends")
               : Status();
  }
  return {};
}

Status read_glm5_next(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  double limit = 10;
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_limit", &limit));
  const auto most = static_cast<float>(limit);
  experts.clamp = {.limit = most, .alpha = 1, .up_limit = most, .shift = 0};
  config->attention_scale = 1 / std::sqrt(static_cast<float>(config->latent.nope_dim));
  FT_RETURN_IF_ERROR(read_glm5_index(fields, config));
  const Json* bound = fields.find("linear_lower_bound");
  if (bound != nullptr && (!bound->is_number() || *bound >= 0)) {
    return fields.wrong("linear_lower_bound", "below zero");
  }
  config->recurrent.lower_bound = bound != nullptr ? static_cast<float>(bound->get<double>()) : 0;
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  FT_RETURN_IF_ERROR(read_linear_sizes(fields, &config->recurrent));
  return read_glm5_streams(fields, &config->hyper);
}

// Vision, of which only the text part is read.
constexpr const char* kGlm5Vision[] = {"model.visual.", "visual."};

}  // namespace

// Z.ai 2026.
constinit const Architecture kGlm5NextArchitecture = {
    .name = "Glm5NextForConditionalGeneration",
    .description =
        "GLM 5.3 Flash (sparse attention); its text part, with its MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 1048576, "rms_norm_eps": 1e-5,
                    "qk_nope_head_dim": 256, "v_head_dim": 256, "n_group": 1, "topk_group": 1,
                    "num_experts_per_tok": 8, "n_shared_experts": 1, "norm_topk_prob": true,
                    "routed_scaling_factor": 2.5, "first_k_dense_replace": 3,
                    "index_topk": 2048, "index_n_heads": 32, "index_head_dim": 128,
                    "index_kpool": 16, "swiglu_limit": 10.0, "hc_mult": 4,
                    "hc_sinkhorn_iters": 20, "linear_num_value_heads": 64,
                    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
                    "linear_lower_bound": -5.0})",
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kGlm5Vision,
                .layer = glm5_next_layer},
    .text_config = true,
    .mtp = {.chains_normed = true,
            .in_streams = false,
            .unread = ".self_attn.indexer.",
            .layer = glm5_next_module},
    .recurrent_type = "linear_attention",
    .translate = translate_glm5_next,
    .read = read_glm5_next,
};

}  // namespace foretoken
