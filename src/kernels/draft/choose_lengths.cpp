#include "kernels/draft/choose_lengths.h"

#include "base/check.h"

namespace foretoken {

void choose_lengths(Queue& queue, const ChooseLengthsArgs& args) {
  FT_CHECK(args.plan != nullptr && args.spans != nullptr && args.result != nullptr);
  FT_CHECK(args.batch.slots != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.drafter >= 0 && args.drafter < kMaxDrafters);
  FT_CHECK(args.row_ns == nullptr || args.num_row_ns > 0);
  FT_CHECK(args.max_draft_tokens > 0 && args.max_draft_tokens <= kMaxDraftTokens);
  FT_CHECK(args.draft_ns >= 0 && args.draft_max_len >= 0);
  queue.launch(args);
}

}  // namespace foretoken
