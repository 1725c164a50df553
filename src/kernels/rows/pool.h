#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// After the target forward, for the spans whose slot pools: adds the span's hidden states to the
// slot's accumulator in order of position (kMean: a running sum; kFirst, kLast: that one row), and
// when the span reaches the last prompt token, writes the pooled state (kMean: divided by the
// prompt length) to ResultView::pooled. The sum's order does not depend on the chunking. A span
// that starts at position 0 starts its accumulator anew.
struct PoolArgs {
  static constexpr Op kOp = Op::kPool;
  const void* states;  // [token rows, hidden] after the final norm
  StepTensors tensors;
  BatchState batch;
  float* accumulators;  // [num_slots + 1, hidden]
  void* result;         // device
  ResultLimits limits;
  int32_t hidden;
  DType dtype;  // kF32 or kBF16
};

void pool(Queue& queue, const PoolArgs& args);

}  // namespace foretoken
