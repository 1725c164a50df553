#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// EAGLE-3 (Li et al. 2025): a layer or few over the embedding of a token and three of the target's
// layers at the token before, with an output matrix of its own.
Result<std::unique_ptr<Drafter>> make_eagle3_drafter(const DrafterContext& context);

// Parallel drafts by such a head (P-EAGLE, Hui et al. 2026): it was trained to go on behind mask
// tokens that pair with a learned state, so that one pass drafts all tokens.
Result<std::unique_ptr<Drafter>> make_p_eagle_drafter(const DrafterContext& context);

}  // namespace foretoken
