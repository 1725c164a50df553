#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"
#include "model/heads/chain_head.h"

namespace foretoken {

// Drafters whose heads make a chain of drafts from the target's last hidden state and, some of
// them, the drafts before: they have no keys and values, so that nothing is ever caught up. The
// target keeps its states in tap pages beside its KV. One pass a draft; a sequence that wants fewer
// drops out of the later ones. Without a number of drafts there are as many as the files have.
Result<std::unique_ptr<Drafter>> make_chain_drafter(const DrafterContext& context, const char* name,
                                                    const ChainFiles& files);

}  // namespace foretoken
