#pragma once
#include <foretoken/config.h>

#include "group/agreement.h"

namespace foretoken {

// What ranks that are processes must have alike, by the names of flags: all that shapes plans,
// shards and tokens. The model counts by its config.json, so that its path may differ by host.
group::AgreedParts agreed_parts(const EngineConfig& config);

}  // namespace foretoken
