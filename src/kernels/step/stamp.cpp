#include "kernels/step/stamp.h"

#include "base/check.h"

namespace foretoken {

void stamp(Queue& queue, const StampArgs& args) {
  FT_CHECK(args.step != nullptr && args.stamps != nullptr);
  queue.launch(args);
}

}  // namespace foretoken
