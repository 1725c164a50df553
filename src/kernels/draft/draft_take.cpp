#include "kernels/draft/draft_take.h"

#include "base/check.h"

namespace foretoken {

void draft_take(Queue& queue, const DraftTakeArgs& args) {
  FT_CHECK(args.batch.slots != nullptr && args.counts != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.logits_rows != nullptr && args.before != nullptr && args.sampled != nullptr);
  FT_CHECK(args.max_rows > 0);
  queue.launch(args);
}

}  // namespace foretoken
