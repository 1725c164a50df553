#include "kernels/gemm/pack_rows.h"

#include "base/check.h"

namespace foretoken {

void pack_rows(Queue& queue, const PackRowsArgs& args) {
  FT_CHECK(args.weight != nullptr && args.rows != nullptr);
  FT_CHECK(args.first_row >= 0 && args.num_rows > 0 && args.k > 0 && args.slice_rows > 0);
  FT_CHECK(args.first_row % args.slice_rows == 0 && args.first_row + args.num_rows <= args.n);
  FT_CHECK(args.num_rows % args.slice_rows == 0 || args.first_row + args.num_rows == args.n);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
