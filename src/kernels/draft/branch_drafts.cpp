#include "kernels/draft/branch_drafts.h"

#include "base/check.h"

namespace foretoken {

void branch_drafts(Queue& queue, const BranchDraftsArgs& args) {
  FT_CHECK(args.plan != nullptr && args.batch.slots != nullptr && args.batch.num_branches > 0);
  FT_CHECK(args.batch.num_branches <= kMaxBranches && args.batch.branch_blocks > 0);
  FT_CHECK(args.counts != nullptr && args.logits_rows != nullptr && args.sampled != nullptr);
  FT_CHECK(args.row_slot != nullptr && args.alternatives != nullptr && args.slots != nullptr);
  FT_CHECK(args.pass >= 0 && args.pass < kMaxDraftTokens && args.max_rows > 0);
  FT_CHECK(args.max_branches > 0 && args.max_branches <= args.batch.num_branches);
  queue.launch(args);
}

}  // namespace foretoken
