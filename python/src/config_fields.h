#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"

namespace foretoken::python {

// An EngineConfig from a JSON object with the fields that Python may set (config/engine_fields.h).
// "speculative_config" is an object with vLLM's fields, or a list of them. An empty "model" is the
// bundled one, and bundled models and drafters go by their names.
Result<EngineConfig> read_config(const std::string& json);

}  // namespace foretoken::python
