#pragma once
#include <foretoken/config.h>

#include <memory>
#include <span>

#include "base/result.h"
#include "draft/drafter.h"

namespace foretoken {

struct DrafterEntry {
  const char* name;
  const char* aliases;  // separated by spaces
  const char* description;
  Result<std::unique_ptr<Drafter>> (*make)(const SpeculativeConfig& config);
};

// All drafters of this build, in the order in which they are shown.
std::span<const DrafterEntry> drafters();

// The configured drafter, or null when `config.method` is empty. An unknown method is an error that
// lists the known ones.
Result<std::unique_ptr<Drafter>> make_drafter(const SpeculativeConfig& config);

}  // namespace foretoken
