#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// out = silu(gate) * up for the live rows, gate_up[r] = [gate | up].
struct SiluMulArgs {
  static constexpr Op kOp = Op::kSiluMul;
  const StepCounts* counts;
  const float* gate_up;  // [max_rows, 2 * size]
  void* out;             // [max_rows, size] of out_dtype
  int32_t max_rows;
  int32_t size;
  DType out_dtype;  // kF32 or kBF16
};

void silu_mul(Queue& queue, const SiluMulArgs& args);

}  // namespace foretoken
