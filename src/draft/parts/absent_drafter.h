#pragma once
#include <memory>

#include "draft/parts/drafter.h"

namespace foretoken {

// A drafter on a rank that never drafts, as stages before the last one: they plan and time steps by
// its traits. It has no weights and takes no memory; `propose` must not be called. `name` stays.
std::unique_ptr<Drafter> make_absent_drafter(const char* name, const DrafterTraits& traits);

}  // namespace foretoken
