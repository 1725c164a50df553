#pragma once
#include <foretoken/config.h>

#include <array>
#include <cstdint>

#include "base/result.h"
#include "kernels/step_types.h"
#include "spec/length_controller.h"

namespace foretoken {

// By what drafts are accepted: the field rejection_sample_method.
enum class AcceptanceMethod : uint8_t {
  kCoupled,    // where the target samples the draft itself
  kSynthetic,  // by given rates, for measurements
};

// As the field names it.
const char* acceptance_method_name(AcceptanceMethod method);

// How many drafts are proposed, by length_policy and num_speculative_tokens_per_batch_size.
// InvalidArgument for another word, a wrong schedule, and both at once.
Result<LengthMode> length_mode(const SpeculativeConfig& config);

// InvalidArgument for another word, for rules that are not built, and for synthetic rates that are
// missing, wrong, or given to another rule.
Result<AcceptanceMethod> acceptance_method(const SpeculativeConfig& config);

// Chance of draft i given those before it, in 2^-32 (~0: always), as
// kernels/step/verify_and_commit.h wants it: from the rates, or from the mean length as 1, 1, ...,
// the rest, 0, ... For a checked configuration of the rule `synthetic`.
std::array<uint32_t, kMaxDraftTokens> synthetic_chances(const SpeculativeConfig& config);

}  // namespace foretoken
