#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// out = activation(gate) * up for the live token rows, gate_up[r] = [gate | up]. With a `weight`
// gate_up is what GemmArgs::kRawGates made of it, to which the bias is added first: the bits are
// those of its gated product.
struct GatedActArgs {
  static constexpr Op kOp = Op::kGatedAct;
  const StepCounts* counts;
  const float* gate_up;  // [max_rows, 2 * size]
  void* out;             // [max_rows, size] of out_dtype
  int32_t max_rows;
  int32_t size;
  Activation activation;
  DType out_dtype;               // kF32 or kBF16
  const void* weight = nullptr;  // handle of a weight packed by WeightOrder::kGateUp, or null
  const float* bias = nullptr;   // [gate | up] or null; only with a weight
  GateClamp clamp = {};          // where has_gate_numbers
};

void gated_act(Queue& queue, const GatedActArgs& args);

}  // namespace foretoken
