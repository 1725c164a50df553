#include "kernels/softcap.h"

#include "base/check.h"

namespace foretoken {

void softcap(Queue& queue, const SoftcapArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.size > 0);
  FT_CHECK(args.cap > 0);
  queue.launch(args);
}

}  // namespace foretoken
