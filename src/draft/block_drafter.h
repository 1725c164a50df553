#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"
#include "model/draft_head_config.h"

namespace foretoken {

// The field of a configuration below which drafts are not proposed, 0 to 1; 0: all are.
inline constexpr const char* kConfidenceField = "confidence_threshold";

// What drafters share whose head drafts a block in one pass (model/block_head.h): the catch-up
// makes entries of the target's states, which the target keeps in tap pages beside its KV, then one
// pass over the last known token and masks drafts for every sequence. Its blocks have as many rows
// as the most drafts need, whatever a sequence wants of them, so that drafts do not depend on that.
// They write entries behind the known ids, which the catch-up of a later step replaces.
Result<std::unique_ptr<Drafter>> make_block_drafter(const DrafterContext& context, HeadKind kind,
                                                    const char* name);

}  // namespace foretoken
