#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// out = activation(x) for the live token rows: the inner part of an MLP without a gate, or numbers
// of low rank.
struct ActivateArgs {
  static constexpr Op kOp = Op::kActivate;
  const StepCounts* counts;
  const float* x;  // [max_rows, size]
  void* out;       // [max_rows, size] of out_dtype
  int32_t max_rows;
  int32_t size;
  Activation activation;
  DType out_dtype;                    // kF32 or kBF16
  const float* parameters = nullptr;  // [4], the p of kXielu
};

void activate(Queue& queue, const ActivateArgs& args);

}  // namespace foretoken
