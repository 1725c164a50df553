#include <nlohmann/json.hpp>

#include "model/config/compressed_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Attention to a window and to compressed entries, then a mixture, whose experts in the first
// layers the tokens say; both by hyper-connections.
LayerSpec deepseek_v4_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.base = "ffn.";
  experts.gate = "w1";
  experts.up = "w3";
  experts.down = "w2";
  experts.shared_gate_proj = "w1";
  experts.shared_up_proj = "w3";
  experts.shared_down = "w2";
  experts.activation = Activation::kClampedSilu;
  experts.shared_clamp = experts.clamp;
  experts.correction = layer.hashed ? nullptr : "gate.bias";
  experts.table = layer.hashed ? "gate.tid2eid" : nullptr;
  experts.vocabulary = config.vocab_size;
  LayerSpec spec = pre_norm_layer(compressed_of(config, layer), experts);
  spec.mixer_norm = "attn_norm";
  spec.feed_forward_norm = "ffn_norm";
  spec.hyper = config.hyper;
  return spec;
}

// Of a draft module: published ones see a window alone, and their rows choose experts.
LayerSpec deepseek_v4_module(const ModelConfig& config, const LayerConfig& layer) {
  LayerConfig own = layer;
  own.compress = 0;
  own.chooses = own.hashed = false;
  return deepseek_v4_layer(config, own);
}

Status read_hyper(const ConfigFields& fields, HyperConfig* out) {
  double eps = 1e-6;
  FT_RETURN_IF_ERROR(fields.need_count("hc_mult", &out->count));
  FT_RETURN_IF_ERROR(fields.need_count("hc_sinkhorn_iters", &out->rounds));
  FT_RETURN_IF_ERROR(fields.read_positive("hc_eps", &eps));
  out->eps = static_cast<float>(eps);
  if (out->count >= 2 && out->count <= 4) return {};
  return unsupported(fields.where() + ": hc_mult " + std::to_string(out->count) +
                     " is not supported; supported: 2 to 4");
}

Status read_deepseek_v4(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_cut_activation(fields));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSqrtSoftplus;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  experts.correction = true;
  experts.normalised = true;
  double limit = 10;
  FT_RETURN_IF_ERROR(fields.read_positive("swiglu_limit", &limit));
  const auto most = static_cast<float>(limit);
  experts.clamp = {.limit = most, .alpha = 1, .up_limit = most, .shift = 0};
  FT_ASSIGN_OR_RETURN(
      config->compressed,
      read_compressed_config(fields, config->head_dim, config->num_heads, &config->layers));
  return read_hyper(fields, &config->hyper);
}

constexpr const char* kModules[] = {"mtp."};

}  // namespace

// DeepSeek-AI 2026, under the names of published files. A draft module reads all streams.
constinit const Architecture kDeepseekV4Architecture = {
    .name = "DeepseekV4ForCausalLM",
    .description = "DeepSeek V4 Flash and Pro, with their MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 1048576, "num_key_value_heads": 1, "head_dim": 512,
                    "partial_rotary_factor": 0.125, "rope_theta": 10000, "compress_rope_theta": 160000,
                    "routed_scaling_factor": 1.5, "n_shared_experts": 1, "swiglu_limit": 10.0,
                    "rms_norm_eps": 1e-6, "sliding_window": 128})",
    .decoder = {.places = {{{"", "head.weight"}, {nullptr, nullptr}}},
                .embedding = "embed",
                .ignored = kModules,
                .layer = deepseek_v4_layer},
    .mtp = {.layers = "mtp.",
            .counts_on = false,
            .projection = "h_proj",
            .embed_projection = "e_proj",
            .output_norm = "norm",
            .layer = deepseek_v4_module,
            .windowed = true},
    .translate = translate_compressed,
    .read = read_deepseek_v4,
};

}  // namespace foretoken
