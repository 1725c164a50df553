#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// Block diffusion (DFlash, Chen et al. 2026): see draft/block_drafter.h. The states are those of
// several target layers.
Result<std::unique_ptr<Drafter>> make_dflash_drafter(const DrafterContext& context);

}  // namespace foretoken
