#pragma once
#include <cstdint>

#include "draft/registry.h"
#include "model/draft_head.h"

namespace foretoken {

// How many rows a head takes at once.
struct HeadRows {
  int32_t of_pass = 0;    // of any pass
  int32_t of_logits = 0;  // of them those that logits are made of
};

// What `context` says of a head that drafts for sequences of up to `max_len` positions: its
// matrices are rounded as its own configuration says, and it is cut as the drafter is.
DraftHeadOptions head_options(const DrafterContext& context, int32_t max_len, const HeadRows& rows);

}  // namespace foretoken
