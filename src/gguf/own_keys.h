#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace foretoken {

// Fields of config.json that a file of one architecture says otherwise than by a key for each:
// GgufArchitecture::read. Errors name the file and the key.

// Which generation of Falcon it is, by its key heads and norms.
Status read_falcon_file(const GgufFile& file, nlohmann::json& config);

// Gemma 3n: what the shapes of tensors say, the layers that share keys and values, and how sparse
// which MLPs are.
Status read_gemma3n_file(const GgufFile& file, nlohmann::json& config);

}  // namespace foretoken
