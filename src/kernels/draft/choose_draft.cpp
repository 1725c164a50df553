#include "kernels/draft/choose_draft.h"

#include "base/check.h"

namespace foretoken {

void choose_draft(Queue& queue, const ChooseDraftArgs& args) {
  FT_CHECK(args.plan != nullptr && args.batch.slots != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.batch.priors != nullptr);
  FT_CHECK(args.drafter >= 0 && args.drafter < kMaxDrafters);
  queue.launch(args);
}

}  // namespace foretoken
