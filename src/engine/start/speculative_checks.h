#pragma once
#include <foretoken/config.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/step_types.h"
#include "model/config/config.h"
#include "spec/length_controller.h"

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

// How lengths are chosen; `drafters` stays empty. Of a checked configuration.
LengthControllerConfig length_policy_config(const EngineConfig& config);

// Chance of draft i given those before it, in 2^-32 (~0: always), as
// kernels/step/verify_and_commit.h wants it: from the rates, or from the mean length as 1, 1, ...,
// the rest, 0, ... For a checked configuration of the rule `synthetic`.
std::array<uint32_t, kMaxDraftTokens> synthetic_chances(const SpeculativeConfig& config);

}  // namespace foretoken
