#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec bitnet_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.sub_norm = "attn_sub_norm";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.sub_norm = "ffn_sub_norm";
  return pre_norm_layer(attention, mlp);
}

}  // namespace

// Ma et al. 2025 (BitNet b1.58 2B4T): Llama's blocks with a norm before the last matrix of each
// part, and squared ReLU behind the gate.
constinit const Architecture kBitNetArchitecture = {
    .name = "BitNetForCausalLM",
    .description = "BitNet b1.58",
    .defaults =
        R"({"max_position_embeddings": 2048, "num_key_value_heads": 5, "hidden_act": "relu2",
                    "rms_norm_eps": 1e-5, "rope_theta": 500000.0})",
    .decoder = {.layer = bitnet_layer},
};

}  // namespace foretoken
