#pragma once
#include <functional>
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"

namespace foretoken {

struct DrafterContext;

// Enqueues the op of a look-up, which proposes up to shape.num_draft_tokens drafts, more than 0,
// for each slot whose turn it is. Engine thread, while a graph is captured too.
using LookUp = std::function<void(Queue& queue, const DraftStep& step, const DraftShape& shape)>;

// A drafter that finds drafts in texts by one op: it reads token pages through the block tables and
// needs no memory of its own. `name` is its row's, with which it lives. InvalidArgument where
// draft_max_len says so.
Result<std::unique_ptr<Drafter>> make_look_up_drafter(const DrafterContext& context,
                                                      const char* name, LookUp look_up);

}  // namespace foretoken
