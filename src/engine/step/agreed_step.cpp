#include "engine/step/agreed_step.h"

#include <algorithm>

namespace foretoken {

// A drafter that catches nothing up goes through no layers.
group::StepShapeWish wish_of(const StepShape& shape) {
  group::StepShapeWish wish{.rows = static_cast<uint32_t>(shape.max_rows)};
  for (size_t i = 0; i < shape.drafts.size(); ++i) {
    const DraftShape& own = shape.drafts[i];
    if (own.max_catch_up_rows == 0) continue;
    wish.drafts[i] = {true, static_cast<uint32_t>(own.num_draft_tokens)};
  }
  return wish;
}

StepShape with_passes_of(StepShape shape, const group::StepShapeWish& agreed) {
  for (size_t i = 0; i < shape.drafts.size(); ++i) {
    const group::DraftPassesWish& passes = agreed.drafts[i];
    if (!passes.catches_up) continue;
    DraftShape& own = shape.drafts[i];
    own.max_catch_up_rows = std::max(own.max_catch_up_rows, 1);
    own.num_draft_tokens = static_cast<int>(passes.num_draft_tokens);
    if (own.num_draft_tokens > 0) own.max_spans = std::max(own.max_spans, 1);
  }
  return shape;
}

}  // namespace foretoken
