#include "kernels/comm/stage_exchange.h"

#include "base/check.h"

namespace foretoken {

void send_step(Queue& queue, const SendStepArgs& args) {
  FT_CHECK(args.comm != nullptr && args.tensors.counts != nullptr);
  FT_CHECK(args.max_rows > 0 && args.max_rows <= 65536);
  queue.launch(args);
}

void receive_step(Queue& queue, const ReceiveStepArgs& args) {
  FT_CHECK(args.comm != nullptr && args.tensors.counts != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_slots > 0 && args.step != nullptr);
  queue.launch(args);
}

void send_rows(Queue& queue, const SendRowsArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.max_rows > 0 && args.cols > 0);
  queue.launch(args);
}

void receive_rows(Queue& queue, const ReceiveRowsArgs& args) {
  FT_CHECK(args.comm != nullptr && args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.max_rows > 0 && args.cols > 0);
  queue.launch(args);
}

}  // namespace foretoken
