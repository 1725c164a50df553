#pragma once
#include <memory>

#include "base/result.h"
#include "draft/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// Prompt lookup (Saxena 2023): see kernels/ngram.h. It reads token pages through the block tables
// and needs no memory of its own.
Result<std::unique_ptr<Drafter>> make_ngram_drafter(const DrafterContext& context);

}  // namespace foretoken
