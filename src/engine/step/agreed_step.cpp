#include "engine/step/agreed_step.h"

#include <algorithm>

namespace foretoken {

// A drafter that catches nothing up goes through no layers.
group::StepShapeWish wish_of(const StepShape& shape) {
  group::StepShapeWish wish{.rows = static_cast<uint32_t>(shape.max_rows),
                            .lane_rows = static_cast<uint32_t>(shape.lane_rows),
                            .without_graph = shape.launch == StepLaunch::kOps};
  for (size_t i = 0; i < shape.drafts.size(); ++i) {
    const DraftShape& own = shape.drafts[i];
    if (own.max_catch_up_rows == 0) continue;
    wish.drafts[i] = {static_cast<uint32_t>(own.num_draft_tokens),
                      static_cast<uint32_t>(own.max_catch_up_rows),
                      static_cast<uint32_t>(own.max_spans)};
  }
  return wish;
}

StepShape with_passes_of(StepShape shape, const group::StepShapeWish& agreed) {
  shape.max_rows = static_cast<int>(agreed.rows);
  shape.lane_rows = static_cast<int>(agreed.lane_rows);
  if (agreed.without_graph) shape.launch = StepLaunch::kOps;
  for (size_t i = 0; i < shape.drafts.size(); ++i) {
    const group::DraftPassesWish& passes = agreed.drafts[i];
    if (passes.catch_up_rows == 0) continue;
    shape.drafts[i] = {static_cast<int>(passes.num_draft_tokens),
                       static_cast<int>(passes.catch_up_rows), static_cast<int>(passes.spans)};
  }
  return shape;
}

}  // namespace foretoken
