#include "kernels/lora/lora_replace.h"

#include "base/check.h"

namespace foretoken {

void lora_replace(Queue& queue, const LoraReplaceArgs& args) {
  FT_CHECK(args.matrices != nullptr && args.y != nullptr);
  FT_CHECK((args.x != nullptr) != (args.token_ids != nullptr));
  FT_CHECK(args.k > 0 && args.n > 0 && args.adapter_stride > 0);
  FT_CHECK(args.rows.num_tiles != nullptr && args.rows.tiles != nullptr &&
           args.rows.rows != nullptr);
  FT_CHECK(args.max_rows > 0 && args.max_adapters > 0 && args.max_adapters <= kMaxAdapters);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
