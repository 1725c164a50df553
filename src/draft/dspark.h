#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// confidence_threshold must lie in [0, 1).
Status check_dspark_fields(const SpeculativeConfig& config);

// DSpark (DeepSeek-AI 2026): see draft/block_drafter.h and draft/markov_output.h. Its block drafts
// as many tokens as it has rows, each with a look at the draft before.
Result<std::unique_ptr<Drafter>> make_dspark_drafter(const DrafterContext& context);

}  // namespace foretoken
