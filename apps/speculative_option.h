#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"

namespace foretoken {

// The value of --speculative-config: a JSON object with vLLM's field names. A field that this build
// does not have is an error that names it.
Result<SpeculativeConfig> parse_speculative_config(const std::string& text);

}  // namespace foretoken
