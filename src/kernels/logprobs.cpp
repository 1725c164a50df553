#include "kernels/logprobs.h"

#include "base/check.h"

namespace foretoken {

void logprobs(Queue& queue, const LogprobsArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.logits != nullptr && args.result != nullptr && t.counts != nullptr);
  FT_CHECK(t.logits_rows != nullptr && t.row_slot != nullptr && t.sampled != nullptr);
  FT_CHECK(args.params != nullptr && args.limits.max_rows > 0);
  FT_CHECK(args.limits.max_top >= 0 && args.limits.max_top <= kMaxLogprobs);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
