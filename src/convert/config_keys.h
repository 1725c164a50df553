#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/container/gguf_writer.h"
#include "gguf/hf_names.h"
#include "model/config/config.h"

namespace foretoken {

// Adds what a GGUF file says of a model's shape: sizes, norms, heads and rotary positions.
// Unsupported names what such a file cannot say: windows, other activations, biases of the MLP,
// rotary embeddings that turn a part of a head or have parameters of their own. `where` begins the
// messages.
Status add_config_keys(const ModelConfig& config, const GgufArchitecture& architecture,
                       const std::string& where, GgufKeys& keys);

// Divisors of the rotary frequencies, which GGUF files hold as the tensor rope_freqs.weight
// [head_dim / 2]; empty unless the model has rope_type llama3.
std::vector<float> rope_divisors(const RopeConfig& rope);

}  // namespace foretoken
