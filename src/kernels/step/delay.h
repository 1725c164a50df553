#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"

namespace foretoken {

// Keeps the queue busy for a while without touching memory: for tests.
struct DelayArgs {
  static constexpr Op kOp = Op::kDelay;
  int32_t microseconds;
};

void delay(Queue& queue, const DelayArgs& args);

}  // namespace foretoken
