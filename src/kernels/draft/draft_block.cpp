#include "kernels/draft/draft_block.h"

#include "base/check.h"

namespace foretoken {

void draft_block(Queue& queue, const DraftBlockArgs& args) {
  const StepTensors& out = args.out.rows;
  FT_CHECK(args.first_drafting == 0 || args.first_drafting == 1);
  FT_CHECK(args.first_entry == 0 || args.first_entry == 1);
  FT_CHECK(args.batch.slots != nullptr && args.batch.params != nullptr &&
           args.batch.block_size > 0);
  FT_CHECK(args.counts != nullptr && args.token_ids != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.logits_rows != nullptr && args.last_seen != nullptr && args.max_rows > 0);
  FT_CHECK(out.counts != nullptr && out.counts != args.counts && out.token_ids != nullptr);
  FT_CHECK(out.positions != nullptr && out.row_slot != nullptr && out.kv_slot != nullptr);
  FT_CHECK(out.logits_rows != nullptr && args.out.source != nullptr);
  FT_CHECK(args.before != nullptr && args.mask_id >= 0 && args.rows > 0);
  queue.launch(args);
}

}  // namespace foretoken
