#include "kernels/draft/draft_chain.h"

#include "base/check.h"

namespace foretoken {

void draft_chain(Queue& queue, const DraftChainArgs& args) {
  FT_CHECK(args.slots != nullptr && args.counts != nullptr && args.logits_rows != nullptr);
  FT_CHECK(args.row_slot != nullptr && args.before != nullptr && args.token_ids != nullptr);
  FT_CHECK(args.sampled != nullptr && (args.drawn != nullptr) == (args.draft > 0));
  FT_CHECK(args.out_counts != nullptr && args.out_ids != nullptr && args.out_from != nullptr);
  FT_CHECK(args.out_positions != nullptr && args.out_slot != nullptr);
  FT_CHECK(args.out_logits_rows != nullptr && args.max_rows > 0 && args.max_out > 0);
  FT_CHECK(args.draft >= 0 && args.draft <= kMaxDraftTokens);
  queue.launch(args);
}

}  // namespace foretoken
