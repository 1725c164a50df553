#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec nemotron_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), plain_mlp_of(config, layer));
}

}  // namespace

// Parmar et al. 2024, Muralidharan et al. 2024: layer norms with weights 1 + w, half of each head
// turns, and an MLP without a gate.
constinit const Architecture kNemotronArchitecture = {
    .name = "NemotronForCausalLM",
    .description = "Nemotron 4, Minitron",
    .defaults = R"({"max_position_embeddings": 4096, "norm_eps": 1e-5, "hidden_act": "relu2",
                    "partial_rotary_factor": 0.5})",
    .decoder = {.layer = nemotron_layer,
                .norms = {.kind = NormKind::kLayer, .offset = 1, .bias = true}},
};

// Arcee AI 2025: Llama's blocks with an MLP without a gate.
constinit const Architecture kArceeArchitecture = {
    .name = "ArceeForCausalLM",
    .description = "AFM 4.5B",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
                    "hidden_act": "relu2"})",
    .default_end = 128001,
    .decoder = {.layer = nemotron_layer},
};

// Inception 2025: the same with layer norms, and biases of all matrices.
constinit const Architecture kJais2Architecture = {
    .name = "Jais2ForCausalLM",
    .description = "Jais 2",
    .defaults = R"({"max_position_embeddings": 8192, "layer_norm_eps": 1e-5,
                    "hidden_act": "relu2", "attention_bias": true, "mlp_bias": true})",
    .default_end = 150024,
    .decoder = {.layer = nemotron_layer, .norms = {.kind = NormKind::kLayer, .bias = true}},
};

}  // namespace foretoken
