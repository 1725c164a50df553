#include "kernels/pair_rows.h"

#include "base/check.h"

namespace foretoken {

void pair_rows(Queue& queue, const PairRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.token_ids != nullptr && args.table != nullptr);
  FT_CHECK(args.states != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.vocab > 0 && args.hidden > 0 && args.eps >= 0);
  FT_CHECK(args.states_dtype == DType::kF32 || args.states_dtype == DType::kBF16);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
