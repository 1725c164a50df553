#include "kernels/shape_logits.h"

#include "base/check.h"

namespace foretoken {

void shape_logits(Queue& queue, const ShapeLogitsArgs& args) {
  const StepTensors& t = args.tensors;
  const SlotLists& lists = args.batch.lists;
  FT_CHECK(args.logits != nullptr && args.seen != nullptr && t.counts != nullptr);
  FT_CHECK(t.logits_rows != nullptr && t.row_slot != nullptr && t.positions != nullptr);
  FT_CHECK(args.batch.params != nullptr && args.batch.slots != nullptr);
  FT_CHECK(args.batch.block_tables != nullptr && args.batch.token_pages != nullptr);
  FT_CHECK(lists.logit_bias != nullptr && lists.bad_words != nullptr);
  FT_CHECK(lists.allowed_ids != nullptr && int64_t{lists.mask_words} * 32 >= args.vocab);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
