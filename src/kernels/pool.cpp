#include "kernels/pool.h"

#include "base/check.h"

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

}  // namespace foretoken
