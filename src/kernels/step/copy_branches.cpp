#include "kernels/step/copy_branches.h"

#include "base/check.h"

namespace foretoken {

void copy_branches(Queue& queue, const CopyBranchesArgs& args) {
  FT_CHECK(args.plan != nullptr && args.batch.num_branches > 0 && args.batch.branch_blocks > 0);
  FT_CHECK(args.counts != nullptr && args.spans != nullptr);
  FT_CHECK(args.full.count > 0 && args.full.parts != nullptr);
  FT_CHECK(args.windowed.count == 0 || args.batch.window_tables != nullptr);
  queue.launch(args);
}

}  // namespace foretoken
