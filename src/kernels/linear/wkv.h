#pragma once
#include "device/queue.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxWkvKeyDim = 128;

// The generalised delta rule of RWKV 7 (Peng et al. 2025) over the packed rows of a LinearShape
// whose channels decay and whose rows remove: for each head
//   S = decay * S + returned (x) S^T removed + k (x) v,  out = S^T q,
// where both S on the right are as the row before left it. States, pending updates and what a run
// goes on from as of LinearAttentionArgs.
struct WkvArgs {
  static constexpr Op kOp = Op::kWkv;
  const StepCounts* counts;
  const float* x;            // [max_rows, shape.row_size()]
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  const SlotState* slots;    // [slots + 1], or null
  float* states;             // [slots + 1, value_heads, key_dim, value_dim]
  int32_t* committed;        // [slots + 1]
  float* pending;            // [slots + 1, pending_rows, shape.update_size()]
  float* out;                // [max_rows, value_heads * value_dim]
  LinearShape shape;         // as many key heads as value heads, key_dim at most kMaxWkvKeyDim
  int32_t max_rows;
  int32_t pending_rows;  // more than the drafts of a step
};

void wkv(Queue& queue, const WkvArgs& args);

}  // namespace foretoken
