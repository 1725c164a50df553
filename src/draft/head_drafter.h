#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"
#include "model/draft_head.h"

namespace foretoken {

// What EAGLE, EAGLE-3, P-EAGLE and MTP drafters share: a head that pairs token i with the target's
// hidden state of position i - 1, which the target keeps in tap pages beside its KV. Entries made
// while drafting pair with the head's own states, so they are caught up again from exact ones.
// Draft p + 1 comes from module min(p, modules - 1). A module beyond the first also gets the
// entries of the drafts before its own, so that it sees what it was trained to see.
// P-EAGLE drafts in one pass behind the catch-up: over the last known token and masks, each of
// which drafts.
Result<std::unique_ptr<Drafter>> make_head_drafter(const DrafterContext& context, HeadKind kind,
                                                   const char* name);

}  // namespace foretoken
