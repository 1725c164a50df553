#include "model/layer/layer_spec.h"

namespace foretoken {

// Touvron et al. 2023, Grattafiori et al. 2024; also SmolLM 1 and 2, TinyLlama, Yi and many others
// that are published under this name. Pre-norm blocks of grouped-query attention with rotary
// positions and a gated SiLU MLP; biases where attention_bias and mlp_bias ask for them.
LayerSpec llama_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
}

constinit const Architecture kLlamaArchitecture = {
    .name = "LlamaForCausalLM",
    .description = "Llama 2, 3, 3.1 and 3.2; SmolLM; TinyLlama",
    .defaults = R"({"max_position_embeddings": 2048})",
};

// IQuest Lab 2025: the same.
constinit const Architecture kIQuestCoderArchitecture = {
    .name = "IQuestCoderForCausalLM",
    .description = "IQuest Coder V1",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "rms_norm_eps": 1e-5})",
};

}  // namespace foretoken
