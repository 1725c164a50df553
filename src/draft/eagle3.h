#pragma once
#include <memory>

#include "base/result.h"
#include "draft/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// EAGLE-3 (Li et al. 2025): one layer over the embedding of a token and three of the target's
// layers at the token before, with an output matrix of its own.
Result<std::unique_ptr<Drafter>> make_eagle3_drafter(const DrafterContext& context);

}  // namespace foretoken
