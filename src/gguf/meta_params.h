#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace foretoken {

// Whether a folder is in Meta's own layout: params.json, consolidated.00.pth and no config.json,
// nor the consolidated safetensors of Mistral's.
bool has_meta_params(const std::filesystem::path& folder);

// The config.json that params.json of such a folder stands for: Llama 1 to 3.3, Code Llama.
// What params.json does not say follows from it: how long texts may be, and the factor of 3.1's
// positions (32 up to 3,072 columns, the sizes of 3.2; else 8). Unsupported names a field of
// another model, and what to use instead; InvalidArgument a number that cannot be; NotFound says
// that the number of tokens needs tokenizer.model.
Result<nlohmann::json> meta_config(const std::filesystem::path& folder);

}  // namespace foretoken
