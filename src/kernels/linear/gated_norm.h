#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What the gates of GatedNormArgs pass first.
enum class NormGate : int32_t { kNone, kSilu, kSigmoid };

// Norms of root mean squares of each group of a row, with gates, for the live token rows: with
// norm(x) = x / sqrt(mean of squares + eps) * weights
//   out = norm(x) * gate(gates), or with `gates_first`  out = norm(x * gate(gates)).
// Without weights there is no norm, only the gates, and `out` may be x where it is of floats.
struct GatedNormArgs {
  static constexpr Op kOp = Op::kGatedNorm;
  const StepCounts* counts;
  const float* x;        // [max_rows, num_groups * group_size]
  const float* gates;    // [max_rows, gate_stride], the first; null with kNone
  const float* weights;  // [group_size], or with own_weights [num_groups * group_size]; or null
  void* out;             // [max_rows, num_groups * group_size] of dtype
  int32_t gate_stride;
  int32_t max_rows;
  int32_t num_groups;
  int32_t group_size;
  int32_t own_weights;
  int32_t gates_first;
  NormGate gate;
  float eps;
  DType dtype;  // kF32 or kBF16
};

void gated_norm(Queue& queue, const GatedNormArgs& args);

}  // namespace foretoken
