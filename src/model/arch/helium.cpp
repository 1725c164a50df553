#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec helium_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  attention.o_bias = false;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

}  // namespace

// Kyutai 2025: Llama's blocks, where pairs of a head lie side by side.
constinit const Architecture kHeliumArchitecture = {
    .name = "HeliumForCausalLM",
    .description = "Helium 1",
    .defaults = R"({"max_position_embeddings": 4096, "head_dim": 128, "rms_norm_eps": 1e-8,
                    "rope_theta": 100000.0})",
    .decoder = {.layer = helium_layer},
};

}  // namespace foretoken
