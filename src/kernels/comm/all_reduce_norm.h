#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/comm/collectives.h"
#include "kernels/op.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/step_types.h"

namespace foretoken {

// all_reduce of `delta`, then rms_norm of the residual with it, over the live token rows:
//   residual += delta_scale * (the sum of delta over the ranks);  out = norm(residual) * weight
// with the bits of those two ops. `delta` is scratch afterwards.
// With `deals_residual` a row of the residual may be left right on one rank only, which is the same
// one in all such ops of one max_rows and hidden: the next thing that reads the residual must be
// another all_reduce_norm over these rows, which takes the row from that rank.
struct AllReduceNormArgs {
  static constexpr Op kOp = Op::kAllReduceNorm;
  const void* comm;
  const StepCounts* counts;
  float* delta;         // [max_rows, hidden]
  float* residual;      // [max_rows, hidden]
  const float* weight;  // [hidden]
  void* out;            // [max_rows, hidden] of out_dtype
  int32_t max_rows;
  int32_t hidden;
  float eps;
  DType out_dtype;  // kF32 or kBF16
  float delta_scale = 1;
  int32_t deals_residual = 0;
};

// The two ops that it stands for.
struct AllReduceNormOps {
  AllReduceArgs sum;
  RmsNormArgs norm;
};
constexpr AllReduceNormOps all_reduce_norm_ops(const AllReduceNormArgs& a) {
  AllReduceNormOps ops{{a.comm, a.counts, a.delta, RowKind::kToken, 0, a.max_rows, a.hidden},
                       {a.counts, a.residual, a.delta, a.weight, a.out, nullptr, 0, a.max_rows,
                        a.hidden, a.eps, a.out_dtype}};
  ops.norm.delta_scale = a.delta_scale;
  return ops;
}

void all_reduce_norm(Queue& queue, const AllReduceNormArgs& args);

}  // namespace foretoken
