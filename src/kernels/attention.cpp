#include "kernels/attention.h"

#include "base/check.h"

namespace foretoken {

void attention(Queue& queue, const AttentionArgs& args) {
  FT_CHECK(args.counts != nullptr && args.q != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.block_tables != nullptr && args.max_blocks > 0 && args.max_rows > 0);
  FT_CHECK(args.kv.k != nullptr && args.kv.v != nullptr && args.kv.block_size > 0);
  FT_CHECK(args.kv.head_dim > 0 && args.kv.head_dim <= kMaxHeadDim);
  FT_CHECK(args.kv.num_kv_heads > 0 && args.num_heads > 0);
  FT_CHECK(args.num_heads % args.kv.num_kv_heads == 0 && args.window >= 0);
  FT_CHECK(args.softcap >= 0 && args.kv_begin >= 0);
  FT_CHECK(args.kv.dtype == DType::kF32 || args.kv.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
