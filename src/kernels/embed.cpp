#include "kernels/embed.h"

#include "base/check.h"

namespace foretoken {

void embed(Queue& queue, const EmbedArgs& args) {
  FT_CHECK(args.counts != nullptr && args.token_ids != nullptr && args.table != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.vocab > 0 && args.hidden > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.norm_weight == nullptr || args.normed != nullptr);
  queue.launch(args);
}

}  // namespace foretoken
