#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/row_kind.h"
#include "kernels/step_types.h"

namespace foretoken {

// x[r] = cap * tanh(scale * x[r] / cap), or scale * x[r] without a cap, in place, for the live
// rows: counts->num_rows, or clamp(counts->num_logits_rows - row_offset, 0, max_rows), row 0 of x
// being logits row row_offset.
struct SoftcapArgs {
  static constexpr Op kOp = Op::kSoftcap;
  const StepCounts* counts;
  float* x;  // [max_rows, size]
  RowKind row_kind;
  int32_t row_offset;
  int32_t max_rows;
  int32_t size;
  float cap;  // 0: none
  float scale = 1;
};

void softcap(Queue& queue, const SoftcapArgs& args);

}  // namespace foretoken
