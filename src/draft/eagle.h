#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// EAGLE (Li et al. 2024): one layer over the embedding of a token and the target's last hidden
// state of the token before.
Result<std::unique_ptr<Drafter>> make_eagle_drafter(const DrafterContext& context);

}  // namespace foretoken
