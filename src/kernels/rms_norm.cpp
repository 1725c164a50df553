#include "kernels/rms_norm.h"

#include "base/check.h"

namespace foretoken {

void rms_norm(Queue& queue, const RmsNormArgs& args) {
  FT_CHECK(args.counts != nullptr && args.residual != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.hidden > 0 && args.eps >= 0);
  FT_CHECK(args.row_offset >= 0 && (args.row_index != nullptr || args.row_offset == 0));
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
