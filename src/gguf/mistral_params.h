#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace foretoken {

// Whether a folder is in Mistral's own layout: params.json and consolidated.safetensors, and no
// config.json.
bool has_mistral_params(const std::filesystem::path& folder);

// The config.json that params.json of such a folder stands for. Unsupported names a field of what
// is no dense text model (moe, vision_encoder, quantization, ...), and what to use instead.
Result<nlohmann::json> mistral_config(const std::filesystem::path& folder);

}  // namespace foretoken
