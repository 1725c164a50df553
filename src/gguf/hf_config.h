#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// What config.json of the same model would say. Errors name the file and the key.
Result<nlohmann::json> gguf_model_config(const GgufFile& file);

// The same for generation_config.json: the ids that end an output, those that the file names and
// those of gguf_end_tokens.
Result<nlohmann::json> gguf_generation_config(const GgufFile& file);

}  // namespace foretoken
