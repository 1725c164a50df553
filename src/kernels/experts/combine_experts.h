#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/experts/expert_lists.h"
#include "kernels/op.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a mixture of experts leaves of each live token row, in float:
//   sum = shared * shared_scale (or 0), then for each slot in ascending order whose expert is of
//   this rank sum = fma(weight, y[row * top_k + slot], sum); out = sum, or out += sum with `add`.
// shared_scale is the sigmoid of shared_gate where that is given, else 1. Without weights (null)
// each counts once (Llama 4, which weighs what goes in). With a norm the rows of `out` are a
// residual stream that is about to be normed: normed[r] = out[r] / sqrt(mean(out[r]^2) + norm_eps)
// * norm, with the bits of rms_norm.
struct CombineExpertsArgs {
  static constexpr Op kOp = Op::kCombineExperts;
  const StepCounts* counts;
  const void* y;             // [max_rows * top_k, hidden] of dtype
  const int32_t* ids;        // [max_rows, top_k]
  const float* weights;      // [max_rows, top_k] or null
  const float* shared;       // [max_rows, hidden] or null; or one for all rows, [hidden]
  const float* shared_gate;  // [max_rows] or null
  float* out;                // [max_rows, hidden]
  int32_t first_expert;      // of this rank
  int32_t num_own;           // its experts
  int32_t top_k;
  int32_t max_rows;
  int32_t hidden;
  DType dtype;  // kF32 or kBF16
  int32_t add = 0;
  const float* norm = nullptr;  // [hidden] or null
  void* normed = nullptr;       // [max_rows, hidden] of dtype; null without a norm
  float norm_eps = 0;
  int32_t shared_is_one = 0;
};

// What the rows of `shared` are apart.
FT_HD inline int64_t shared_stride(const CombineExpertsArgs& args) {
  return args.shared_is_one != 0 ? 0 : args.hidden;
}

// The norm of what an op with one leaves, by itself.
inline RmsNormArgs norm_behind(const CombineExpertsArgs& args) {
  return {.counts = args.counts,
          .residual = args.out,
          .delta = nullptr,
          .weight = args.norm,
          .out = args.normed,
          .row_index = nullptr,
          .row_offset = 0,
          .max_rows = args.max_rows,
          .hidden = args.hidden,
          .eps = args.norm_eps,
          .out_dtype = args.dtype};
}

void combine_experts(Queue& queue, const CombineExpertsArgs& args);

}  // namespace foretoken
