#include "kernels/comm/collectives.h"

#include "base/check.h"

namespace foretoken {

void all_reduce(Queue& queue, const AllReduceArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.cols > 0);
  queue.launch(args);
}

void gather_columns(Queue& queue, const GatherColumnsArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr);
  FT_CHECK(args.part != nullptr && args.out != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.cols > 0);
  queue.launch(args);
}

void gather_argmax(Queue& queue, const GatherArgmaxArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.keys != nullptr);
  FT_CHECK(args.ids != nullptr && args.max_rows > 0);
  queue.launch(args);
}

void share_masks(Queue& queue, const ShareMasksArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.spans != nullptr);
  FT_CHECK(args.slots != nullptr && args.params != nullptr && args.masks != nullptr);
  FT_CHECK(args.mask_words > 0);
  queue.launch(args);
}

void share_logits(Queue& queue, const ShareLogitsArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.comm != nullptr && args.logits != nullptr && t.counts != nullptr);
  FT_CHECK(t.logits_rows != nullptr && t.row_slot != nullptr && t.positions != nullptr);
  FT_CHECK(args.slots != nullptr && args.params != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
