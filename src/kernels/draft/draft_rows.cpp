#include "kernels/draft/draft_rows.h"

#include "base/check.h"

namespace foretoken {

void draft_rows(Queue& queue, const DraftRowsArgs& args) {
  const StepTensors& out = args.out.rows;
  FT_CHECK(args.plan != nullptr && args.spans != nullptr && args.batch.slots != nullptr);
  FT_CHECK(args.batch.params != nullptr && args.batch.page_headers != nullptr);
  FT_CHECK(args.batch.block_size > 0 && args.out.source != nullptr);
  FT_CHECK(out.counts != nullptr && out.token_ids != nullptr && out.positions != nullptr);
  FT_CHECK(out.row_slot != nullptr && out.kv_slot != nullptr && out.logits_rows != nullptr);
  FT_CHECK(args.drafter >= 0 && args.drafter < kMaxDrafters);
  FT_CHECK(args.first_entry >= 0 && args.max_rows > 0 && args.max_len > 0);
  FT_CHECK(args.last_only == 0 || args.last_only == 1);
  queue.launch(args);
}

}  // namespace foretoken
