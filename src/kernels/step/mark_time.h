#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"

namespace foretoken {

// Stores when everything enqueued before has run: nanoseconds of a clock of the device, which has
// no relation to other clocks. For measuring.
struct MarkTimeArgs {
  static constexpr Op kOp = Op::kMarkTime;
  int64_t* ns;  // pinned memory
};

void mark_time(Queue& queue, const MarkTimeArgs& args);

}  // namespace foretoken
