#include "kernels/draft/suffix.h"

#include <bit>

#include "base/check.h"

namespace foretoken {

void suffix(Queue& queue, const SuffixArgs& args) {
  FT_CHECK(args.plan != nullptr && args.batch.slots != nullptr && args.batch.block_size > 0);
  FT_CHECK(args.batch.params != nullptr && args.spans != nullptr);
  FT_CHECK(args.num_draft_tokens >= 0 && args.num_draft_tokens <= kMaxDraftTokens);
  FT_CHECK(args.drafter >= 0 && args.drafter < kMaxDrafters);
  FT_CHECK(args.max_depth >= 1 && args.max_depth <= suffix_table::kMaxDepth &&
           args.max_factor >= 0);
  const suffix_table::Table& table = args.table;
  FT_CHECK(table.num_buckets == 0 || (std::has_single_bit(table.num_buckets) &&
                                      table.entries != nullptr && table.clock != nullptr));
  queue.launch(args);
}

}  // namespace foretoken
