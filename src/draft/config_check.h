#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "draft/registry.h"

namespace foretoken {

// Fields of a drafter's configuration that contradict the traits of its method, as far as they can
// be told without files: one sentence that says what to change.
Status check_config(const SpeculativeConfig& config, const DrafterEntry& entry);

}  // namespace foretoken
