#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec apertus_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  LayerSpec spec = pre_norm_layer(attention, plain_mlp_of(config, layer));
  spec.mixer_norm = "attention_layernorm";
  spec.feed_forward_norm = "feedforward_layernorm";
  return spec;
}

}  // namespace

// Swiss AI Initiative 2025: norms of queries and keys, and an MLP without a gate whose activation
// is learned (xIELU).
constinit const Architecture kApertusArchitecture = {
    .name = "ApertusForCausalLM",
    .description = "Apertus",
    .defaults = R"({"max_position_embeddings": 65536, "rms_norm_eps": 1e-5, "hidden_act": "xielu",
                    "rope_theta": 12000000.0})",
    .decoder = {.layer = apertus_layer},
};

}  // namespace foretoken
