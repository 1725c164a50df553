#include "kernels/sample.h"

#include "base/check.h"

namespace foretoken {

void sample(Queue& queue, const SampleArgs& args) {
  FT_CHECK(args.logits != nullptr && args.tensors.counts != nullptr);
  FT_CHECK(args.tensors.logits_rows != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.tensors.row_slot != nullptr && args.tensors.positions != nullptr);
  FT_CHECK(args.batch.slots != nullptr && args.batch.block_tables != nullptr);
  FT_CHECK(args.batch.token_pages != nullptr && args.batch.block_size > 0);
  FT_CHECK(args.tensors.sampled != nullptr && args.row_offset >= 0);
  FT_CHECK(args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
