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

// Tensors of the parts that read images and speech.
constexpr const char* kPhi4Multimodal[] = {"model.embed_tokens_extend."};

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

// Microsoft 2025: Phi-4-mini that reads images and speech, of which only the text part is read.
constinit const Architecture kPhi4MultimodalArchitecture = {
    .name = "Phi4MultimodalForCausalLM",
    .description = "Phi-4 Multimodal; its text part",
    .defaults = R"({"max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "num_key_value_heads": 8, "partial_rotary_factor": 1.0})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.ignored = kPhi4Multimodal, .layer = phi3_layer},
};

}  // namespace foretoken
