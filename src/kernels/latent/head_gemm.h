#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// A product for each head of the live token rows, accumulated in float: y[r, h] = x[r, h] *
// weight[h]^T. The heads' matrices lie one below the other in one packed weight [num_heads * n, k],
// made with unit_rows = n and not quantised.
// Batch-invariant as gemm is. Between the heads of a row there may be elements that belong to
// others: strides are in elements.
struct HeadGemmArgs {
  static constexpr Op kOp = Op::kHeadGemm;
  const StepCounts* counts;
  const void* x;       // [max_rows, num_heads, x_stride] of dtype; the first k of each are read
  const void* weight;  // handle of Device::pack_weight
  void* y;             // [max_rows, num_heads, y_stride] of dtype; the first n are written
  int32_t max_rows;
  int32_t num_heads;
  int32_t n;  // of one head, a multiple of kHeadColumns
  int32_t k;
  int32_t x_stride;
  int32_t y_stride;
  DType dtype;  // kF32 or kBF16
};

inline constexpr int kHeadColumns = 16;

void head_gemm(Queue& queue, const HeadGemmArgs& args);

}  // namespace foretoken
