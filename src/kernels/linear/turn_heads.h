#pragma once
#include "device/queue.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Norms heads of queries and keys and turns them by their positions before they enter a state, in
// place, for the live token rows (lightning attention of Ling 2.5). Of x[r] = [q heads | k heads |
// ..]:
// 1. with q_norm or k_norm each head of q or k becomes x / sqrt(mean(x^2) + eps) * weight;
// 2. of the first rotary_dim elements pairs half of them apart turn, as of RopeKvArgs.
struct TurnHeadsArgs {
  static constexpr Op kOp = Op::kTurnHeads;
  const StepCounts* counts;
  float* x;                  // [max_rows, stride]
  const int32_t* positions;  // [max_rows]
  const float* inv_freq;     // [rotary_dim / 2]; null: nothing turns
  const float* q_norm;       // [head_dim] or null, and so is the next
  const float* k_norm;
  int32_t max_rows;
  int32_t stride;
  int32_t num_queries;  // heads
  int32_t num_keys;
  int32_t head_dim;    // at most kMaxHeadDim
  int32_t rotary_dim;  // even, at most head_dim
  float scaling;
  float eps;
};

void turn_heads(Queue& queue, const TurnHeadsArgs& args);

}  // namespace foretoken
