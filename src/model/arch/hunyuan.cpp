#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec hunyuan_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kTurned;
  attention.q_norm = "query_layernorm";
  attention.k_norm = "key_layernorm";
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

}  // namespace

// Tencent 2025: Llama's blocks with norms of queries and keys that have turned.
constinit const Architecture kHunyuanArchitecture = {
    .name = "HunYuanDenseV1ForCausalLM",
    .description = "Hunyuan, dense",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})",
    .decoder = {.layer = hunyuan_layer},
};

}  // namespace foretoken
