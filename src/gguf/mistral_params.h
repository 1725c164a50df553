#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace foretoken {

// Whether a folder is in Mistral's own layout: params.json and consolidated.safetensors, or files
// that consolidated.safetensors.index.json names, and no config.json.
bool has_mistral_params(const std::filesystem::path& folder);

// The config.json that params.json of such a folder stands for, of the text part: dense models
// (Mistral, Ministral 3), mixtures (Mixtral) and those with latent attention (Mistral Small 4,
// Large 3), also in Mistral's FP8 with a scale a matrix (`quantization`) or as compressed-tensors
// has them (`quantization_config` of Large 3, or `quantization`). Unsupported names a field of
// another model, and what to use instead.
Result<nlohmann::json> mistral_config(const std::filesystem::path& folder);

}  // namespace foretoken
