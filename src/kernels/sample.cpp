#include "kernels/sample.h"

#include "base/check.h"

namespace foretoken {

void sample(Queue& queue, const SampleArgs& args) {
  FT_CHECK(args.logits != nullptr && args.counts != nullptr && args.logits_rows != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr && args.params != nullptr);
  FT_CHECK(args.sampled != nullptr && args.row_offset >= 0);
  FT_CHECK(args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
