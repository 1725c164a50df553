#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// GGUF files have q, k and v as one tensor.
LayerSpec phi_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = config.plain_matrices;
  attention.o = "dense";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "fc1";
  mlp.down = "fc2";
  return parallel_layer(attention, mlp);
}

Status read_phi(const ConfigFields& fields, ModelConfig* config) {
  config->head_bias = true;
  bool normed = false;
  FT_RETURN_IF_ERROR(fields.read_flag("qk_layernorm", &normed));
  if (!normed) return {};
  return unsupported(fields.where() +
                     ": qk_layernorm is not supported; use a model like Phi 1, 1.5 or 2, whose "
                     "queries and keys are not normed");
}

}  // namespace

// Gunasekar et al. 2023, Li et al. 2023: attention and MLP read the residual through one norm, a
// part of each head turns, and everything has a bias.
constinit const Architecture kPhiArchitecture = {
    .name = "PhiForCausalLM",
    .description = "Phi 1, 1.5 and 2",
    .defaults = R"({"max_position_embeddings": 2048, "layer_norm_eps": 1e-5,
                    "hidden_act": "gelu_new", "partial_rotary_factor": 0.5,
                    "attention_bias": true, "mlp_bias": true})",
    .decoder = {.last_norm = "final_layernorm",
                .layer = phi_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .read = read_phi,
};

}  // namespace foretoken
