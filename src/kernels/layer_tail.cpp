#include "kernels/layer_tail.h"

#include "base/check.h"

namespace foretoken {

void layer_tail(Queue& queue, const LayerTailArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.sync != nullptr);
  FT_CHECK(args.o != nullptr && args.gate_up != nullptr && args.down != nullptr);
  FT_CHECK(args.residual != nullptr && args.delta != nullptr && args.normed != nullptr);
  FT_CHECK(args.gated != nullptr && args.mlp_norm != nullptr);
  FT_CHECK(args.max_rows > 0 && args.hidden > 0 && args.x_size > 0 && args.inner > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  if (args.qkv != nullptr) {
    FT_CHECK(args.next_norm != nullptr && args.qkv_out != nullptr && args.qkv_size > 0);
  }
  queue.launch(args);
}

}  // namespace foretoken
