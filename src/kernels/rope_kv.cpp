#include "kernels/rope_kv.h"

#include "base/check.h"

namespace foretoken {

void rope_kv(Queue& queue, const RopeKvArgs& args) {
  FT_CHECK(args.counts != nullptr && args.qkv != nullptr && args.q_out != nullptr);
  FT_CHECK(args.positions != nullptr && args.kv_slot != nullptr && args.max_rows > 0);
  FT_CHECK(args.kv.k != nullptr && args.kv.v != nullptr && args.kv.block_size > 0);
  FT_CHECK(args.kv.head_dim > 0 && args.kv.head_dim <= kMaxHeadDim && args.kv.num_kv_heads > 0 &&
           args.num_heads > 0);
  FT_CHECK(args.rotary_dim >= 0 && args.rotary_dim <= args.kv.head_dim);
  FT_CHECK(args.rotary_dim % 2 == 0);
  FT_CHECK(args.norm_eps >= 0);
  FT_CHECK(args.kv.dtype == DType::kF32 || args.kv.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
