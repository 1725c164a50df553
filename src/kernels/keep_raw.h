#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Copies the live logits rows whose slot both shapes its logits and wants logprobs from `logits`
// to `raw`, before anything changes them.
struct KeepRawArgs {
  static constexpr Op kOp = Op::kKeepRaw;
  const float* logits;  // [max_rows, vocab]
  float* raw;           // [max_rows, vocab]
  StepTensors tensors;
  BatchState batch;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void keep_raw(Queue& queue, const KeepRawArgs& args);

}  // namespace foretoken
