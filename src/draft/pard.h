#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// Parallel drafts by a draft model (PARD, An et al. 2025): it was trained to go on behind mask
// tokens, so that one pass over the last known token and masks drafts all tokens. Its config.json
// names the mask.
Result<std::unique_ptr<Drafter>> make_pard_drafter(const DrafterContext& context);

// The mask that the config.json of a folder names; empty where it names none that could be one.
std::optional<int32_t> pard_mask_id(const std::string& folder);

}  // namespace foretoken
