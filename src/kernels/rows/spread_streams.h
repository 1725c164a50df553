#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/rows/fold_streams.h"
#include "kernels/step_types.h"

namespace foretoken {

// Gives what a part made of a row's folded streams to its streams (fold_streams.h), in place, for
// the live token rows:
//   stream s = out[s] * made + sum over j of mix[j][s] * stream j,
// where the right side has what entered. Without weights every stream becomes what was made.
struct SpreadStreamsArgs {
  static constexpr Op kOp = Op::kSpreadStreams;
  const StepCounts* counts;
  const float* made;     // [max_rows, size]
  const float* weights;  // [max_rows, S + S * S] as of FoldStreamsArgs, or null
  float* streams;        // [max_rows, S, size]
  int32_t num_streams;   // 2 to kMaxHyperStreams
  int32_t max_rows;
  int32_t size;
};

void spread_streams(Queue& queue, const SpreadStreamsArgs& args);

}  // namespace foretoken
