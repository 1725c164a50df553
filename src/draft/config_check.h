#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"

namespace foretoken {

// Fields of a drafter's configuration that contradict its method (a name of draft/registry.h), as
// far as they can be told without files: one sentence that says what to change.
Status check_config(const SpeculativeConfig& config, const std::string& method);

}  // namespace foretoken
