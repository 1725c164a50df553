#pragma once
#include <foretoken/config.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"

namespace foretoken {

// Every field of the drafters' configurations that can be judged without their models: ranges, what
// all drafters must agree on, and fields that exclude one another. The first fault found is
// returned, with its remedy.
Status check_speculative(const EngineConfig& config);

// Replaces each method by its name in the registry, an empty one by what the model says about
// itself, and refuses two equal drafters and draft vocabularies that the target has not. `folders`:
// where the drafters' models lie, by drafter. Lengths are compared where the target's is known.
Status resolve_methods(EngineConfig& config, const std::vector<std::string>& folders,
                       const ModelConfig& target);

}  // namespace foretoken
