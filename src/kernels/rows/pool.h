#pragma once
#include <cmath>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// After the target forward, for the spans whose slot pools: adds the span's hidden states to the
// slot's accumulator in order of position (kMean, kMeanSqrtLen, kWeightedMean: a running sum; kMax:
// the largest; kFirst, kLast: that one row), and when the span reaches the last prompt token,
// writes the pooled state (sums: divided by `pool_divisor`) to ResultView::pooled. The sum's order
// does not depend on the chunking. A span that starts at position 0 starts its accumulator anew.
// kTokens: the span's states are copied to ResultView::states, where there is room for all rows.
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

// What the sum of a prompt of `len` tokens is divided by; float, as both devices do.
FT_HD inline float pool_divisor(DevicePooling pooling, int32_t len) {
  const auto count = static_cast<float>(len);
  if (pooling == DevicePooling::kMean) return count;
  if (pooling == DevicePooling::kMeanSqrtLen) return sqrtf(count);
  if (pooling == DevicePooling::kWeightedMean) return count * (count + 1) / 2;
  return 1;
}

// What the host finds of a span that is complete.
FT_HD inline RowsOfStates state_rows(const SpanState& span, DevicePooling pooling,
                                     const ResultLimits& limits) {
  const bool fits = span.row_begin + span.num_rows <= limits.max_states;
  return {span.row_begin, pooling == DevicePooling::kTokens && fits ? span.num_rows : 0};
}

void pool(Queue& queue, const PoolArgs& args);

}  // namespace foretoken
