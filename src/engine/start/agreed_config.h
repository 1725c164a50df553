#pragma once
#include <foretoken/config.h>

#include "group/agreement.h"

namespace foretoken {

// What ranks that are processes must have alike, by the names of flags: all that shapes plans,
// shards and tokens, as the rows of config/engine_fields.h say, and the drafters. The model counts
// by its config.json and a file by what it holds, so that paths may differ by host.
group::AgreedParts agreed_parts(const EngineConfig& config);

}  // namespace foretoken
