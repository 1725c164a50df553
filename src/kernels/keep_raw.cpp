#include "kernels/keep_raw.h"

#include "base/check.h"

namespace foretoken {

void keep_raw(Queue& queue, const KeepRawArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.logits != nullptr && args.raw != nullptr && t.counts != nullptr);
  FT_CHECK(t.logits_rows != nullptr && t.row_slot != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
