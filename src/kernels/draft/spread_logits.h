#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Logits of a drafter's own vocabulary laid out by target ids: out[i][id_map[n]] = in[i][n] for the
// live logits rows and the n with id_map[n] >= 0; -inf elsewhere.
struct SpreadLogitsArgs {
  static constexpr Op kOp = Op::kSpreadLogits;
  const StepCounts* counts;
  const float* in;        // [max_rows, n]
  const int32_t* id_map;  // [n], each target id at most once
  float* out;             // [max_rows, vocab]
  int32_t row_offset;     // logits row of row 0
  int32_t max_rows;
  int32_t n;
  int32_t vocab;
};

void spread_logits(Queue& queue, const SpreadLogitsArgs& args);

}  // namespace foretoken
