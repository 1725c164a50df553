#include "model/config/architecture.h"

namespace foretoken {

// Bakouch et al. 2025: Llama's blocks; every no_rope_layer_interval-th layer knows no positions.
constinit const Architecture kSmolLm3Architecture = {
    .name = "SmolLM3ForCausalLM",
    .description = "SmolLM 3",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 4,
                    "rope_theta": 2000000.0, "no_rope_layer_interval": 4,
                    "tie_word_embeddings": true})",
    .window_rule = WindowRule::kWithoutRope,
};

}  // namespace foretoken
