#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// The end of step part 9: stores the time in StepStamps::end_ns of the step that was published
// last.
struct StampArgs {
  static constexpr Op kOp = Op::kStamp;
  const uint64_t* step;  // device step counter
  StepStamps* stamps;    // kStepRingSize entries in pinned memory
};

void stamp(Queue& queue, const StampArgs& args);

}  // namespace foretoken
