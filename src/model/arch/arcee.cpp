#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec arcee_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), plain_mlp_of(config, layer));
}

}  // namespace

// Arcee AI 2025: Llama's blocks with an MLP without a gate.
constinit const Architecture kArceeArchitecture = {
    .name = "ArceeForCausalLM",
    .description = "AFM 4.5B",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
                    "hidden_act": "relu2"})",
    .default_end = 128001,
    .decoder = {.layer = arcee_layer},
};

}  // namespace foretoken
