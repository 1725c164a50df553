#include "kernels/draft/draft_alternatives.h"

#include "base/check.h"

namespace foretoken {

void draft_alternatives(Queue& queue, const DraftAlternativesArgs& args) {
  FT_CHECK(args.logits != nullptr && args.counts != nullptr);
  FT_CHECK(args.sampled != nullptr && args.out != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
