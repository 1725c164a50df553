#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// Parallel drafts by a draft model (PARD, An et al. 2025): it was trained to go on behind mask
// tokens, so that one pass over the last known token and masks drafts all tokens. Its config.json
// names the mask.
Result<std::unique_ptr<Drafter>> make_pard_drafter(const DrafterContext& context);

}  // namespace foretoken
