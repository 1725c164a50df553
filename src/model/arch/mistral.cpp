#include "model/config/architecture.h"

namespace foretoken {

// Jiang et al. 2023: Llama's blocks; every layer sees a window where sliding_window is a number
// (7B v0.1), and all positions where it is null (later models).
constinit const Architecture kMistralArchitecture = {
    .name = "MistralForCausalLM",
    .description = "Mistral 7B, Nemo, Small and Ministral",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8,
                    "sliding_window": 4096})",
    .window_rule = WindowRule::kAlways,
};

}  // namespace foretoken
