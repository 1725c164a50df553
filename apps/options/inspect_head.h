#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

// What a folder holds that a drafter reads and that is no model of its own: an EAGLE, P-EAGLE,
// DFlash, DSpark or Domino head, or MTP modules. Its method, sizes and memory, from config.json and
// the tensors' names; nothing is loaded. Empty for other folders, those of language models among
// them. Errors are those of reading the head's config.json.
Result<std::optional<nlohmann::ordered_json>> inspect_head(const std::string& folder);

// A language model that drafts behind masks: the method that reads it, and the id of its mask.
struct ParallelModel {
  std::string method;
  int32_t mask_id = 0;
};

// Empty for other folders.
std::optional<ParallelModel> find_parallel_model(const std::string& folder);

}  // namespace foretoken
