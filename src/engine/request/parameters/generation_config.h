#pragma once
#include <foretoken/config.h>
#include <foretoken/request.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// What a model's makers recommend.
struct GenerationConfig {
  SamplingParams sampling;
  int max_new_tokens = 0;  // most tokens of an output; 0: it says nothing
  // Where EngineConfig names a folder or overrides the ids; otherwise they are the model's matter.
  std::optional<std::vector<int32_t>> eos_token_ids;
};

// Reads generation_config.json, of `target` by default, as EngineConfig::generation_config and
// override_generation_config say. It takes what vLLM takes, by the names that rows of
// config/sampling_fields.cpp have as `model_name`, and nothing else: one warning names the fields
// of a file that would change texts and are passed over. InvalidArgument names the file or option
// and the field at fault.
Result<GenerationConfig> load_generation_config(const EngineConfig& config,
                                                const ModelFiles& target);

}  // namespace foretoken
