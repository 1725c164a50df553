#include "kernels/gemm.h"

#include "base/check.h"

namespace foretoken {

void gemm(Queue& queue, const GemmArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK(args.y != nullptr && args.max_rows > 0 && args.n > 0 && args.k > 0);
  FT_CHECK(args.row_offset >= 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  FT_CHECK(args.gated == 0 || args.n % 2 == 0);
  FT_CHECK(args.add == 0 || (args.gated == 0 && args.out_dtype == DType::kF32));
  queue.launch(args);
}

}  // namespace foretoken
