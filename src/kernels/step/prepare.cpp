#include "kernels/step/prepare.h"

#include "base/check.h"

namespace foretoken {

void prepare(Queue& queue, const PrepareArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.plan != nullptr && args.batch.slots != nullptr && args.batch.block_size > 0);
  FT_CHECK(t.counts != nullptr && t.spans != nullptr && t.token_ids != nullptr);
  FT_CHECK(t.positions != nullptr && t.row_slot != nullptr && t.kv_slot != nullptr);
  FT_CHECK(t.logits_rows != nullptr && args.max_rows > 0 && args.max_logits_rows > 0);
  FT_CHECK(args.batch.params != nullptr);
  FT_CHECK(args.batch.window_tables == nullptr || t.window_slot != nullptr);
  FT_CHECK(args.lane_rows >= 0 && args.lane_offset >= args.lane_rows);
  queue.launch(args);
}

}  // namespace foretoken
