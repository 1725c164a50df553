#include "kernels/step/verify_and_commit.h"

#include "base/check.h"

namespace foretoken {

void verify_and_commit(Queue& queue, const VerifyAndCommitArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.plan != nullptr && args.result != nullptr && args.batch.slots != nullptr);
  FT_CHECK(args.batch.params != nullptr && args.batch.token_pages != nullptr);
  FT_CHECK(t.counts != nullptr && t.spans != nullptr);
  FT_CHECK(t.sampled != nullptr && args.batch.block_size > 0);
  queue.launch(args);
}

}  // namespace foretoken
