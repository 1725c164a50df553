#pragma once
#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/op.h"
#include "kernels/row_kind.h"
#include "kernels/step_types.h"

namespace foretoken {

// y = x * weight^T (+ bias), accumulated in float. Batch-invariant: the bits of a row of y depend
// on that row of x alone, whatever max_rows and the live count are.
// With add = 1 (y then of kF32) the products and the bias are added to what y holds.
// With gated = 1 the weight is [gate; up], n / 2 rows each, packed as WeightOrder::kGateUp, and
// y = activation(gate) * up [max_rows, n / 2] of these products, which are not rounded before.
// With gated = kRawGates y holds the products of such a weight as gated_act finds them again:
// floats [max_rows, raw_gates_stride(n)], without a bias. Live rows: counts->num_rows, or
// clamp(counts->num_logits_rows - row_offset, 0, max_rows). Rows of y beyond the live ones may be
// overwritten; rows of x beyond them are readable memory.
// With frees_next = 1 the next op may read what was there before this one without waiting for it,
// and so run beside it, where it neither reads nor writes y; ops behind it wait for both.
// With x_is_old = 1 this op is such a one, or follows on one: since a product with frees_next, or
// an expert_gemm, no op writes x or touches y, so that it may run beside those. Ops behind it wait
// for all of them.
struct GemmArgs {
  static constexpr Op kOp = Op::kGemm;
  static constexpr int32_t kRawGates = 2;
  const StepCounts* counts;
  const void* x;       // [max_rows, k] of dtype
  const void* weight;  // handle of Device::pack_weight, [n, k] of dtype
  void* y;             // [max_rows, n] of out_dtype, or n / 2
  const float* bias;   // [n] or null; [gate | up] where gated
  RowKind row_kind;
  int32_t row_offset;
  int32_t max_rows;
  int32_t n;
  int32_t k;
  DType dtype;      // kF32 or kBF16
  DType out_dtype;  // kF32 or kBF16
  int32_t add = 0;
  int32_t gated = 0;
  Activation activation = Activation::kSilu;
  int32_t frees_next = 0;
  int32_t x_is_old = 0;
};

// Floats of a row of products as GemmArgs::kRawGates leaves them.
FT_HD inline int32_t raw_gates_stride(int32_t n) { return (n / 2 + 7) / 8 * 16; }

void gemm(Queue& queue, const GemmArgs& args);

}  // namespace foretoken
