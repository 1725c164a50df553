#include "kernels/step/publish.h"

#include "base/check.h"
#include "kernels/plan_layout.h"

namespace foretoken {

void publish(Queue& queue, const PublishArgs& args) {
  FT_CHECK(args.step != nullptr && args.result != nullptr && args.ring != nullptr);
  FT_CHECK(args.entry_bytes >= result_bytes(args.limits));
  FT_CHECK(args.word != nullptr);
  FT_CHECK(args.max_draft_tokens >= 0 && args.max_draft_tokens <= kMaxDraftTokens);
  queue.launch(args);
}

}  // namespace foretoken
