#include "kernels/step/mark_time.h"

#include "base/check.h"

namespace foretoken {

void mark_time(Queue& queue, const MarkTimeArgs& args) {
  FT_CHECK(args.ns != nullptr);
  queue.launch(args);
}

}  // namespace foretoken
