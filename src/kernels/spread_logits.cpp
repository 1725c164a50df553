#include "kernels/spread_logits.h"

#include "base/check.h"

namespace foretoken {

void spread_logits(Queue& queue, const SpreadLogitsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.in != nullptr && args.id_map != nullptr);
  FT_CHECK(args.out != nullptr && args.row_offset >= 0 && args.max_rows > 0);
  FT_CHECK(args.n > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
