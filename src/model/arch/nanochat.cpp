#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec nanochat_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kUnit;
  attention.turns_back = true;
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "fc1";
  mlp.down = "fc2";
  return pre_norm_layer(attention, mlp);
}

}  // namespace

// Karpathy 2025: norms without weights, also of the embedding, of queries and of keys; heads turn
// the other way round, and squared ReLU without a gate.
constinit const Architecture kNanoChatArchitecture = {
    .name = "NanoChatForCausalLM",
    .description = "nanochat",
    .defaults = R"({"max_position_embeddings": 2048, "hidden_act": "relu2",
                    "final_logit_softcapping": 15.0})",
    .decoder = {.embedding_norm = "norm", .layer = nanochat_layer, .norms = {.weighted = false}},
};

}  // namespace foretoken
