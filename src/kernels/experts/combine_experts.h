#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/experts/expert_lists.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a mixture of experts leaves of each live token row, in float:
//   sum = shared * shared_scale (or 0), then for each slot in ascending order whose expert is of
//   this rank sum = fma(weight, y[row * top_k + slot], sum); out = sum, or out += sum with `add`.
// shared_scale is the sigmoid of shared_gate where that is given, else 1. Without weights (null)
// each counts once (Llama 4, which weighs what goes in).
struct CombineExpertsArgs {
  static constexpr Op kOp = Op::kCombineExperts;
  const StepCounts* counts;
  const void* y;             // [max_rows * top_k, hidden] of dtype
  const int32_t* ids;        // [max_rows, top_k]
  const float* weights;      // [max_rows, top_k] or null
  const float* shared;       // [max_rows, hidden] or null
  const float* shared_gate;  // [max_rows] or null
  float* out;                // [max_rows, hidden]
  int32_t first_expert;      // of this rank
  int32_t num_own;           // its experts
  int32_t top_k;
  int32_t max_rows;
  int32_t hidden;
  DType dtype;  // kF32 or kBF16
  int32_t add = 0;
};

void combine_experts(Queue& queue, const CombineExpertsArgs& args);

}  // namespace foretoken
