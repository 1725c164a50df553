#pragma once
#include <memory>

#include <foretoken/config.h>

#include "base/result.h"
#include "draft/drafter.h"

namespace foretoken {

// Prompt lookup (Saxena 2023): see kernels/ngram.h. It reads token pages through the block tables
// and needs no memory of its own.
Result<std::unique_ptr<Drafter>> make_ngram_drafter(const SpeculativeConfig& config);

}  // namespace foretoken
