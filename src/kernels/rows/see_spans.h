#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// For attention to later rows (LayerKv::last_seen): each row of a span sees up to the position of
// the span's last row. 0 for rows that are not live.
struct SeeSpansArgs {
  static constexpr Op kOp = Op::kSeeSpans;
  const StepCounts* counts;
  const SpanState* spans;    // [num_spans] whose rows are all live ones
  const int32_t* positions;  // [max_rows]
  int32_t* last_seen;        // [max_rows]
  int32_t max_rows;
};

void see_spans(Queue& queue, const SeeSpansArgs& args);

}  // namespace foretoken
