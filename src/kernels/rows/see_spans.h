#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// For attention to later rows (LayerKv::last_seen): each row sees up to the position of the last
// row of its slot, whose rows follow one another. 0 for rows that are not live. It goes by what
// every stage has of a step, which spans are not (ReceiveStepArgs).
struct SeeSpansArgs {
  static constexpr Op kOp = Op::kSeeSpans;
  const StepCounts* counts;
  const int32_t* row_slot;   // [max_rows]
  const int32_t* positions;  // [max_rows]
  int32_t* last_seen;        // [max_rows]
  int32_t max_rows;
};

// The last of the rows up to num_rows that follow `row` with its slot.
FT_HD inline int32_t last_of_slot(const int32_t* row_slot, int32_t row, int32_t num_rows) {
  int32_t last = row, beyond = num_rows;
  while (beyond - last > 1) {
    const int32_t middle = last + (beyond - last) / 2;
    if (row_slot[middle] == row_slot[row]) {
      last = middle;
    } else {
      beyond = middle;
    }
  }
  return last;
}

void see_spans(Queue& queue, const SeeSpansArgs& args);

}  // namespace foretoken
