#pragma once
#include <memory>

#include "base/result.h"
#include "draft/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// A smaller language model of any supported architecture (Leviathan et al. 2023; Chen et al. 2023).
// Its entries depend on the ids alone, so those of accepted drafts stay exact. Layers with a window
// keep everything, since its blocks are those of the target's full group.
Result<std::unique_ptr<Drafter>> make_draft_model_drafter(const DrafterContext& context);

}  // namespace foretoken
