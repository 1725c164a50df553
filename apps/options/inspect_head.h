#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

// What a folder holds that a drafter reads and that is no model of its own: an EAGLE, P-EAGLE,
// DFlash or DSpark head, or MTP modules. Its method, sizes and memory, from config.json and the
// tensors' names; nothing is loaded. Empty for other folders, those of language models among them.
// Errors are those of reading the head's config.json.
Result<std::optional<nlohmann::ordered_json>> inspect_head(const std::string& folder);

// The id of the mask of a language model that drafts behind one (`pard`); empty for others.
std::optional<int32_t> parallel_draft_mask(const std::string& folder);

}  // namespace foretoken
