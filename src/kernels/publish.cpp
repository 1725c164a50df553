#include "kernels/publish.h"

#include "base/check.h"

namespace foretoken {

void publish(Queue& queue, const PublishArgs& args) {
  FT_CHECK(args.step != nullptr && args.result != nullptr && args.ring != nullptr);
  FT_CHECK(args.word != nullptr && args.entry_bytes > 0);
  queue.launch(args);
}

}  // namespace foretoken
