#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// V3.2's blocks whose queries bring gates of what attention leaves, and norms with gates of their
// own, but for those before dense MLPs.
LayerSpec axk2_layer(const ModelConfig& config, const LayerConfig& layer) {
  LatentSpec latent = latent_of(config, layer);
  latent.gate_proj = "q_b_proj";
  latent.gates = HeadGates::kEachElement;
  latent.gates_with_queries = true;
  LayerSpec spec = pre_norm_layer(latent, experts_or_mlp(config, layer, experts_of(config)));
  spec.mixer_norm = "input_layernorm.norm";
  spec.mixer_gate = {.rank = config.row_gate_rank, .base = "input_layernorm."};
  if (!layer.experts) return spec;
  spec.feed_forward_norm = "post_attention_layernorm.norm";
  spec.feed_forward_gate = {.rank = config.row_gate_rank, .base = "post_attention_layernorm."};
  return spec;
}

Status translate_axk2(const ConfigFields& fields, nlohmann::json* json) {
  json->erase("layer_types");  // all have an indexer
  json->erase("head_dim");
  for (const char* name : {"q_lora_rank", "kv_lora_rank", "index_topk"}) {
    if (fields.find(name) == nullptr) return fields.missing(name);
  }
  return {};
}

Status read_axk2(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.need_count("gated_norm_rank", &config->row_gate_rank));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(read_mixture(fields, &experts, &config->layers));
  FT_ASSIGN_OR_RETURN(config->latent.index, read_index_config(fields, config->latent.rope_dim));
  return {};
}

}  // namespace

// SK Telecom 2026.
constinit const Architecture kAxk2Architecture = {
    .name = "AXK2ForCausalLM",
    .description = "A.X K2 (sparse attention)",
    .defaults = R"({"max_position_embeddings": 131072, "first_k_dense_replace": 1,
                    "q_lora_rank": 384, "kv_lora_rank": 128, "qk_nope_head_dim": 64,
                    "qk_rope_head_dim": 32, "v_head_dim": 64, "n_routed_experts": 128,
                    "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 512,
                    "routed_scaling_factor": 2.5, "norm_topk_prob": true, "gated_norm_rank": 16,
                    "index_topk": 2048, "index_n_heads": 16, "index_head_dim": 128})",
    .decoder = {.layer = axk2_layer},
    .translate = translate_axk2,
    .read = read_axk2,
};

}  // namespace foretoken
