#include "model/architecture.h"

namespace foretoken {

// Yang et al. 2024: Llama's blocks with biases of q, k and v; with use_sliding_window the layers
// from max_window_layers on see a window.
constinit const Architecture kQwen2Architecture = {
    .name = "Qwen2ForCausalLM",
    .description = "Qwen 2 and 2.5",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 32,
                    "sliding_window": 4096, "max_window_layers": 28})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.qkv_bias = true},
};

}  // namespace foretoken
