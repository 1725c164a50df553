#pragma once
#include "device/queue.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Linear attention over the packed rows of LinearShape, for the live token rows, position by
// position, so that a row's bits depend on the rows before it in its sequence alone: not on how
// these were cut into steps, nor on drafts that were rejected.
// Rows of one sequence lie side by side at consecutive positions. A step may take back what its
// last rows did to S: drafts, at positions from SlotState::len of their slot on, and the last known
// row before them, which comes again where a grammar let nothing be committed. So `states` keeps S
// behind the last position below len - 1, `committed` says how many positions that are (0: S is
// zero, whatever is there), and `pending` keeps the updates of later ones, position p in row
// p % pending_rows. A run that begins at position p goes on from there: S = states, then the
// pending updates of positions [committed, p), which hold by now, then its own rows. A run at
// position 0 begins anew. Runs that do not follow (measurements with made-up rows) take S as it is.
// Without `slots` (stages before the last one do not know lengths) the last pending_rows rows of
// each run are those that may be taken back.
// With `skip`, skip[h] * v is added to the output of value head h.
struct LinearAttentionArgs {
  static constexpr Op kOp = Op::kLinearAttention;
  const StepCounts* counts;
  const float* x;            // [max_rows, shape.row_size()]
  const float* skip;         // [value_heads] or null
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  const SlotState* slots;    // [slots + 1], or null
  float* states;             // [slots + 1, value_heads, key_dim, value_dim]
  int32_t* committed;        // [slots + 1]
  float* pending;            // [slots + 1, pending_rows, shape.update_size()]
  float* out;                // [max_rows, value_heads * value_dim]
  LinearShape shape;
  int32_t max_rows;
  int32_t pending_rows;  // more than the drafts of a step
};

void linear_attention(Queue& queue, const LinearAttentionArgs& args);

}  // namespace foretoken
