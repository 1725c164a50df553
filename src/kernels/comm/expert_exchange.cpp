#include "kernels/comm/expert_exchange.h"

#include "base/check.h"
#include "kernels/experts/expert_lists.h"

namespace foretoken {

void dispatch_rows(Queue& queue, const DispatchRowsArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.ids != nullptr && args.weights != nullptr);
  FT_CHECK(args.out.counts != nullptr && args.out.begins != nullptr && args.out.x != nullptr);
  FT_CHECK(args.out.ids != nullptr && args.out.weights != nullptr);
  FT_CHECK(args.max_rows > 0 && args.max_rows <= args.capacity_rows);
  FT_CHECK(args.hidden > 0 && args.hidden % 8 == 0);
  FT_CHECK(args.top_k > 0 && args.top_k <= kMaxTopExperts);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

void return_rows(Queue& queue, const ReturnRowsArgs& args) {
  FT_CHECK(args.comm != nullptr && args.begins != nullptr);
  FT_CHECK(args.sums != nullptr && args.scratch != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.hidden > 0 && args.hidden % 8 == 0);
  FT_CHECK(args.shared_gate == nullptr || args.shared != nullptr);
  queue.launch(args);
}

}  // namespace foretoken
