#include "kernels/move_rows.h"

#include "base/check.h"

namespace foretoken {

void move_rows(Queue& queue, const MoveRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.in != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.width > 0 && args.out_offset >= 0);
  FT_CHECK(args.out_offset + args.width <= args.out_stride);
  FT_CHECK(args.in_dtype == DType::kF32 || args.in_dtype == DType::kBF16);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
