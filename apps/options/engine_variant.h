#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// That an engine whose drafts a variant of this name is about has drafters, or the sentence of
// compat.
Status check_drafts_of_variant(const EngineConfig& base, const std::string& name);

// The engine that `name` means, made of `base`: off (no speculation), as-given, adaptive, fixed or
// fixed:K (K drafts a step, at most those of the first drafter of `base`), with B branches of
// drafts where +B stands behind it, and with N steps in flight where @N does.
Result<EngineConfig> engine_variant(const EngineConfig& base, const std::string& name);

// The engines of these variants, in this order; each of several has a profile of its own. Aborted
// when interrupted.
Result<std::vector<std::unique_ptr<Engine>>> start_engines(const EngineConfig& base,
                                                           const std::vector<std::string>& names);

}  // namespace foretoken
