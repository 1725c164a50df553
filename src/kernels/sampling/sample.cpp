#include "kernels/sampling/sample.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

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

template <>
struct Costs<SampleArgs> {
  static LiveRowsPlace place(const SampleArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const SampleArgs& a, const LiveRows& live) {
    return {.row_bytes = logits_bytes(a, live)};
  }
  static std::string shape(const SampleArgs& a) { return std::to_string(a.vocab); }
};

OpView sample_view() { return counted_view<SampleArgs>(); }

}  // namespace foretoken
