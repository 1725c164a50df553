#include "kernels/rows/see_spans.h"

#include "base/check.h"

namespace foretoken {

void see_spans(Queue& queue, const SeeSpansArgs& args) {
  FT_CHECK(args.counts != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.positions != nullptr && args.last_seen != nullptr);
  FT_CHECK(args.max_rows > 0);
  queue.launch(args);
}

}  // namespace foretoken
