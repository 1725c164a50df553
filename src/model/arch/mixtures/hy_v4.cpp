#include <nlohmann/json.hpp>

#include "model/config/index_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// DeepSeek V3.2's blocks with a sink in each head and gates of what attention leaves; parts read
// streams of hidden states, each of which keeps itself.
LayerSpec hy_v4_layer(const ModelConfig& config, const LayerConfig& layer) {
  LatentSpec latent = latent_of(config, layer);
  latent.sinks = "learnable_sink_param";
  latent.gate_proj = "linear_gate";
  latent.gates = HeadGates::kEachElement;
  // Published files have pairs side by side. transformers' text class turns halves of what it
  // makes, and norms with an epsilon of its own.
  if (config.latent.paired) latent.norm_eps = config.rms_norm_eps;
  ExpertsSpec experts = experts_of(config);
  if (experts.clamp.limit > 0) experts.activation = Activation::kClampedSilu;
  LayerSpec spec = pre_norm_layer(latent, experts_or_mlp(config, layer, experts));
  spec.hyper = config.hyper;
  return spec;
}

Status translate_hy_v4(const ConfigFields& fields, nlohmann::json* json) {
  json->erase("layer_types");  // all have an indexer, or share one
  json->erase("head_dim");
  // Of 1 and 2 modules files have the same one.
  const nlohmann::json* modules = fields.find("num_nextn_predict_layers");
  if (modules != nullptr && modules->is_number_integer() && *modules > 1) {
    (*json)["num_nextn_predict_layers"] = modules->get<int32_t>() - 1;
  }
  for (const char* name : {"q_lora_rank", "kv_lora_rank", "index_topk"}) {
    if (fields.find(name) == nullptr) return fields.missing(name);
  }
  if (fields.find("indexer_types") != nullptr || fields.find("index_topk_freq") != nullptr) {
    return {};
  }
  (*json)["index_topk_freq"] = 4;
  (*json)["index_skip_topk_offset"] = 2;
  return {};
}

Status read_hy_v4_streams(const ConfigFields& fields, HyperConfig* out) {
  double eps = 1e-6, gift = 2;
  FT_RETURN_IF_ERROR(fields.need_count("hc_mult", &out->count));
  FT_RETURN_IF_ERROR(fields.read_positive("hc_eps", &eps));
  FT_RETURN_IF_ERROR(fields.read_positive("hc_magnitude", &gift));
  out->eps = static_cast<float>(eps);
  out->gift = static_cast<float>(gift);
  out->of_mixer = "hc_attn_layer.hc_pre.hc_";
  out->of_feed_forward = "hc_mlp_layer.hc_pre.hc_";
  out->of_end = "hc_head.hc_head_";
  if (out->count >= 2 && out->count <= kMaxHyperStreams) return {};
  return unsupported(fields.where() + ": hc_mult " + std::to_string(out->count) +
                     " is not supported; supported: 2 to " + std::to_string(kMaxHyperStreams));
}

Status read_hy_v4(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_cut_activation(fields));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  double limit = 10;
  const nlohmann::json* found = fields.find("swiglu_limit");
  if (found != nullptr && !found->is_number()) return fields.wrong("swiglu_limit", "a number");
  if (found != nullptr) limit = found->get<double>();
  const auto most = static_cast<float>(limit);
  experts.clamp = {.limit = most, .alpha = 1, .up_limit = most, .shift = 0};
  FT_ASSIGN_OR_RETURN(config->latent.index, read_index_config(fields, config->latent.rope_dim));
  config->latent.index.turns_last = true;
  config->latent.index.norm_eps = config->rms_norm_eps;
  config->latent.index.paired = config->latent.paired;
  FT_RETURN_IF_ERROR(read_index_sharing(fields, &config->layers));
  return read_hy_v4_streams(fields, &config->hyper);
}

// Draft modules, which are read by themselves, and vision.
constexpr const char* kHyV4Others[] = {"model.mtp_layers.",   "model.vision_tower.",
                                       "model.patch_merger.", "vit.",
                                       "perceive.",           "model.perceive."};

constexpr const char* kHyV4Defaults =
    R"({"max_position_embeddings": 262144, "rms_norm_eps": 1e-5, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
        "first_k_dense_replace": 1, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "routed_scaling_factor": 2.827,
        "norm_topk_prob": true, "n_group": 1, "topk_group": 1, "index_topk": 2048,
        "index_n_heads": 16, "index_head_dim": 128, "hc_mult": 4})";

constexpr Architecture hy_v4(const char* name, const char* description) {
  return {.name = name,
          .description = description,
          .defaults = kHyV4Defaults,
          .decoder = {.places = {{{"model.", "lm_head.weight"},
                                  {"model.language_model.", "lm_head.weight"}}},
                      .ignored = kHyV4Others,
                      .layer = hy_v4_layer},
          .text_config = true,
          .mtp = {.layers = "mtp_layers.",
                  .counts_on = false,
                  .output_norm = "final_layernorm",
                  .chains_normed = true,
                  .in_streams = false},
          .translate = translate_hy_v4,
          .read = read_hy_v4};
}

}  // namespace

// Tencent 2026.
constinit const Architecture kHyV4Architecture =
    hy_v4("HYV4ForCausalLM", "Hy4 (sparse attention), with its MTP module as a drafter");
constinit const Architecture kHyV4VlArchitecture =
    hy_v4("HYV4VLForConditionalGeneration",
          "Hy4 with vision; its text part, with its MTP module as a drafter");

}  // namespace foretoken
