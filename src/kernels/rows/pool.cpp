#include "kernels/rows/pool.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void pool(Queue& queue, const PoolArgs& args) {
  const StepTensors& t = args.tensors;
  FT_CHECK(args.states != nullptr && args.accumulators != nullptr && args.result != nullptr);
  FT_CHECK(t.counts != nullptr && t.spans != nullptr);
  FT_CHECK(args.batch.params != nullptr && args.batch.slots != nullptr);
  FT_CHECK(args.hidden > 0 && args.limits.hidden == args.hidden);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<PoolArgs> {
  static LiveRowsPlace place(const PoolArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const PoolArgs& a, const LiveRows& live) {
    return {.row_bytes = live.counts.num_rows * a.hidden * size_of(a.dtype)};
  }
  static std::string shape(const PoolArgs& a) { return std::to_string(a.hidden); }
};

OpView pool_view() { return counted_view<PoolArgs>(); }

}  // namespace foretoken
