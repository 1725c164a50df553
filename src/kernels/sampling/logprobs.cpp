#include "kernels/sampling/logprobs.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

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

template <>
struct Costs<LogprobsArgs> {
  static LiveRowsPlace place(const LogprobsArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const LogprobsArgs& a, const LiveRows& live) {
    return {.row_bytes = logits_bytes(a, live)};
  }
  static std::string shape(const LogprobsArgs& a) { return std::to_string(a.vocab); }
};

OpView logprobs_view() { return counted_view<LogprobsArgs>(); }

}  // namespace foretoken
