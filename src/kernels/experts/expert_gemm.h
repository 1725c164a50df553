#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/experts/expert_lists.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Products of rows with the experts that they chose, accumulated in float: for each entry of the
// lists, y[entry] = x[of the entry] * weight[expert]^T (+ bias[expert]). The experts' matrices lie
// one below the other in one packed weight [count * n, k]; gated ones (WeightOrder::kGateUp) as all
// gates, then all ups, [count * n / 2 gates; count * n / 2 ups], and y = activation(gate) * up, as
// in GemmArgs. Slices of columns never hold rows of two experts: n is a multiple of
// kExpertColumns (of twice as many where gated). Batch-invariant as gemm is: the bits of y[entry]
// depend on its row of x and on its expert alone.
struct ExpertGemmArgs {
  static constexpr Op kOp = Op::kExpertGemm;
  const StepCounts* counts;
  // [max_rows, k] of dtype, one row for all choices of a row of the step; or with by_entry
  // [max_rows * top_k, k], one for each entry.
  const void* x;
  const void* weight;  // handle of Device::pack_weight
  void* y;             // [max_rows * top_k, n] of dtype, or n / 2 where gated
  const float* bias;   // [count, n] or null; [all gates | all ups] where gated
  // [max_rows * top_k]: an entry's row of x is multiplied by this, and rounded, first (Llama 4);
  // null: it is not.
  const float* x_scales;
  ExpertLists lists;
  int32_t max_rows;
  int32_t n;  // of one expert
  int32_t k;
  DType dtype;  // kF32 or kBF16
  int32_t by_entry = 0;
  int32_t gated = 0;
  Activation activation = Activation::kSilu;
  GateClamp clamp = {};  // of Activation::kClampedSilu
};

// Columns of y that devices cut a weight into; a part of an expert is never smaller.
inline constexpr int kExpertColumns = 32;

void expert_gemm(Queue& queue, const ExpertGemmArgs& args);

}  // namespace foretoken
