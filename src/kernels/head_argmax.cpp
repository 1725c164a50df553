#include "kernels/head_argmax.h"

#include "base/check.h"

namespace foretoken {

int64_t head_argmax_bytes(int32_t max_rows, int32_t n) {
  constexpr int32_t kLeastTile = 32;
  return int64_t{max_rows} * ((n + kLeastTile - 1) / kLeastTile) * int64_t{sizeof(uint64_t)};
}

void head_argmax(Queue& queue, const HeadArgmaxArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK(args.ids != nullptr && args.workspace != nullptr);
  FT_CHECK(args.max_rows > 0 && args.n > 0 && args.k > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
