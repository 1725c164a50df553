#include "kernels/draft/ngram.h"

#include "base/check.h"

namespace foretoken {

void ngram(Queue& queue, const NgramArgs& args) {
  FT_CHECK(args.plan != nullptr && args.batch.slots != nullptr && args.batch.block_size > 0);
  FT_CHECK(args.num_draft_tokens >= 0 && args.num_draft_tokens <= kMaxDraftTokens);
  FT_CHECK(args.batch.params != nullptr && args.drafter >= 0 && args.drafter < kMaxDrafters);
  FT_CHECK(args.min_n >= 1 && args.max_n >= args.min_n);
  queue.launch(args);
}

}  // namespace foretoken
