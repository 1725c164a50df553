#pragma once
#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Whether the rows of a slot need their logits as the model made them after these were shaped.
FT_HD inline bool keeps_raw(const SlotParams& params) {
  return params.num_logprobs != kNoLogprobs && shapes_logits(params);
}

// Copies the live logits rows whose slot keeps_raw from `logits` to `raw`, before anything changes
// them.
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
