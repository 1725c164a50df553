#include "kernels/comm/all_reduce_norm.h"

#include "base/check.h"

namespace foretoken {

void all_reduce_norm(Queue& queue, const AllReduceNormArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.delta != nullptr);
  FT_CHECK(args.residual != nullptr && args.weight != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.hidden > 0 && args.hidden % 4 == 0);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
