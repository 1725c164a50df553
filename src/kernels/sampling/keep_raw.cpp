#include "kernels/sampling/keep_raw.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void keep_raw(Queue& queue, const KeepRawArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.logits != nullptr && args.raw != nullptr && t.counts != nullptr);
  FT_CHECK(t.logits_rows != nullptr && t.row_slot != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

template <>
struct Costs<KeepRawArgs> {
  static LiveRowsPlace place(const KeepRawArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const KeepRawArgs& a, const LiveRows& live) {
    return {.row_bytes = 2 * logits_bytes(a, live)};
  }
  static std::string shape(const KeepRawArgs& a) { return std::to_string(a.vocab); }
};

OpView keep_raw_view() { return counted_view<KeepRawArgs>(); }

}  // namespace foretoken
