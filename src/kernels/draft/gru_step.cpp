#include "kernels/draft/gru_step.h"

#include "base/check.h"

namespace foretoken {

void gru_step(Queue& queue, const GruStepArgs& args) {
  FT_CHECK(args.counts != nullptr && args.of_input != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.states != nullptr && args.max_rows > 0 && args.size > 0);
  queue.launch(args);
}

}  // namespace foretoken
