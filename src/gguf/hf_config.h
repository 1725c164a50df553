#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// What config.json of the same model would say. Errors name the file and the key.
Result<nlohmann::json> gguf_model_config(const GgufFile& file);

// An error about that with the file's keys for the fields that it names in quotes, behind which
// they stand in parentheses, as --hf-overrides takes them.
Status with_gguf_keys(const GgufFile& file, const Status& status);

// The same for generation_config.json: the ids that end an output, those that the file names and
// those of gguf_end_tokens.
Result<nlohmann::json> gguf_generation_config(const GgufFile& file);

}  // namespace foretoken
