#include "kernels/sampling/shape_logits.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

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

template <>
struct Costs<ShapeLogitsArgs> {
  static LiveRowsPlace place(const ShapeLogitsArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const ShapeLogitsArgs& a, const LiveRows& live) {
    return {.row_bytes = 2 * logits_bytes(a, live)};
  }
  static std::string shape(const ShapeLogitsArgs& a) { return std::to_string(a.vocab); }
};

OpView shape_logits_view() { return counted_view<ShapeLogitsArgs>(); }

}  // namespace foretoken
