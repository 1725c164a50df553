#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec phi3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  return pre_norm_layer(attention, mlp);
}

}  // namespace

// Abdin et al. 2024: Llama's blocks with q, k, v and gate, up stored as one tensor each, longrope
// for long contexts, and with partial_rotary_factor a part of each head that does not turn.
constinit const Architecture kPhi3Architecture = {
    .name = "Phi3ForCausalLM",
    .description = "Phi-3, Phi-3.5 and Phi-4",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = phi3_layer},
};

}  // namespace foretoken
