#include "kernels/draft/draft_next.h"

#include "base/check.h"

namespace foretoken {

void draft_next(Queue& queue, const DraftNextArgs& args) {
  const StepTensors& out = args.out.rows;
  FT_CHECK(args.batch.slots != nullptr && args.batch.block_size > 0);
  FT_CHECK(args.counts != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.logits_rows != nullptr && args.sampled != nullptr);
  FT_CHECK(out.counts != nullptr && out.counts != args.counts && out.token_ids != nullptr);
  FT_CHECK(out.positions != nullptr && out.row_slot != nullptr && out.kv_slot != nullptr);
  FT_CHECK(out.logits_rows != nullptr && args.out.source != nullptr);
  FT_CHECK(args.pass >= 0 && args.pass < kMaxDraftTokens && args.max_rows > 0);
  queue.launch(args);
}

}  // namespace foretoken
