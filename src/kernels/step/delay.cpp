#include "kernels/step/delay.h"

#include "base/check.h"

namespace foretoken {

void delay(Queue& queue, const DelayArgs& args) {
  FT_CHECK(args.microseconds >= 0);
  queue.launch(args);
}

}  // namespace foretoken
