#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// A smaller language model of any supported architecture (Leviathan et al. 2023; Chen et al. 2023).
// Its entries depend on the ids alone, so those of accepted drafts stay exact. Layers with a window
// keep everything, since its blocks are those of the target's full group.
Result<std::unique_ptr<Drafter>> make_draft_model_drafter(const DrafterContext& context);

// The same under another name of the registry, where all drafts come from one pass behind the
// catch-up: over the last known token and tokens `mask_id`, each of which drafts.
Result<std::unique_ptr<Drafter>> make_parallel_model_drafter(const DrafterContext& context,
                                                             const char* name, int32_t mask_id);

}  // namespace foretoken
