#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "device/row_table.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Input of a draft head: out[r] = [ embedding(token_ids[r]) * scale | states[from(r)] ] of the live
// token rows, from(r) = from[r], or r without, each half root-mean-square normed with its weight
// where one is given; the halves change places where state_first is set. An id outside [0, vocab)
// reads row 0.
struct PairRowsArgs {
  static constexpr Op kOp = Op::kPairRows;
  const StepCounts* counts;
  const int32_t* token_ids;  // [max_rows]
  RowTable table;            // [vocab, hidden] of `dtype`, or halves beside kF32
  const void* states;        // rows of `hidden` elements of states_dtype
  const float* embed_norm;   // [hidden] or null
  const float* states_norm;  // [hidden] or null
  void* out;                 // [max_rows, 2 * hidden] of `dtype`
  int32_t max_rows;
  int32_t vocab;
  int32_t hidden;
  float scale;
  float eps;
  DType states_dtype;
  DType dtype;                    // kF32 or kBF16
  const int32_t* from = nullptr;  // [max_rows] or null
  int32_t state_first = 0;
};

void pair_rows(Queue& queue, const PairRowsArgs& args);

}  // namespace foretoken
