#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"

namespace foretoken {

// The engine that `name` means, made of `base`: off (no speculation), as-given, adaptive, fixed or
// fixed:K (K drafts a step, at most those of the first drafter of `base`).
Result<EngineConfig> engine_variant(const EngineConfig& base, const std::string& name);

}  // namespace foretoken
