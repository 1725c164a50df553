#include "model/config/architecture.h"

namespace foretoken {

// ByteDance Seed 2025: Llama's blocks with biases of q, k and v, and one of what attention adds
// where attention_out_bias asks for it.
constinit const Architecture kSeedOssArchitecture = {
    .name = "SeedOssForCausalLM",
    .description = "Seed-OSS",
    .defaults = R"({"max_position_embeddings": 524288, "num_key_value_heads": 8, "head_dim": 128,
                    "attention_bias": true, "attention_out_bias": false})",
};

}  // namespace foretoken
