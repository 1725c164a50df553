#pragma once
#include <foretoken/config.h>

#include <vector>

#include "compat/compat.h"
#include "draft/registry.h"

namespace foretoken {

// What drafters say of a combination (compat/compat.h).

// Adds what a drafter's row of the registry and its configuration tell.
void add_drafter(const SpeculativeConfig& config, const DrafterEntry& entry, Combination* c);

// What goes together of an engine of which `known` is known and that has these drafters: the
// sentence of compat about it alone, then beside each drafter, the first one and the one behind it
// in its list; of its method where that is known.
Status check_combination(const Combination& known, const std::vector<SpeculativeConfig>& drafters);

}  // namespace foretoken
