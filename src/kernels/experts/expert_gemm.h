#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/experts/expert_lists.h"
#include "kernels/gemm/gemm.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// The expert that all rows share, as part of a product of experts.
struct SharedExpert {
  const void* x;       // [max_rows, k]
  const void* weight;  // handle of Device::pack_weight, [n, k], packed as those of the experts
  void* y;             // [max_rows, n] floats, or where gated [max_rows, n / 2] of dtype
  const float* bias;   // as of GemmArgs
  int32_t n;
  int32_t k;
};

// Products of rows with the experts that they chose, accumulated in float: for each entry of the
// lists, y[entry] = x[of the entry] * weight[expert]^T (+ bias[expert]). The experts' matrices lie
// one below the other in one packed weight [count * n, k]; gated ones (WeightOrder::kGateUp) as all
// gates, then all ups, [count * n / 2 gates; count * n / 2 ups], and y = activation(gate) * up, as
// in GemmArgs. Slices of columns never hold rows of two experts: n is a multiple of
// kExpertColumns (of twice as many where gated). Batch-invariant as gemm is: the bits of y[entry]
// depend on its row of x and on its expert alone. With `shared` the op computes what a gemm of its
// arguments, gated alike, would beside it, with the same bits.
struct ExpertGemmArgs {
  static constexpr Op kOp = Op::kExpertGemm;
  const StepCounts* counts;
  // [max_rows, k] of dtype, one row for all choices of a row of the step; or with by_entry
  // [max_rows * top_k, k], one for each entry. What round_rows makes of that where the weight's
  // form is one of QuantForm::rounds_rows; x of `shared` is as its own weight takes it.
  const void* x;
  const void* weight;  // handle of Device::pack_weight
  void* y;             // [max_rows * top_k, n] of dtype, or n / 2 where gated
  const float* bias;   // [count, n] or null; [all gates | all ups] where gated
  // [max_rows * top_k]: an entry's row of x is multiplied by this, and rounded, first (Llama 4);
  // null: it is not. With rounded rows devices may multiply the sum instead.
  const float* x_scales;
  ExpertLists lists;
  int32_t max_rows;
  int32_t n;  // of one expert
  int32_t k;
  DType dtype;  // kF32 or kBF16
  int32_t by_entry = 0;
  int32_t gated = 0;
  Activation activation = Activation::kSilu;
  GateClamp clamp = {};      // where has_gate_numbers
  SharedExpert shared = {};  // without a weight: there is none
  // Whether an expert_gemm before this one had the same lists, so that they are known early, and
  // left x of `shared`; behind it only x may have been made.
  int32_t lists_are_old = 0;
  // Whether a product with GemmArgs::frees_next comes before this op, behind which nobody wrote x
  // of `shared` or touched y of it, so that what is shared may run beside the ops between.
  int32_t rows_are_old = 0;
  // What the expert_gemm behind this one has as weight of `shared`, [next_n, next_k], so that a
  // device may fetch it early; or null.
  const void* next_shared = nullptr;
  int32_t next_n = 0;
  int32_t next_k = 0;
};

// Columns of y that devices cut a weight into; a part of an expert is never smaller.
inline constexpr int kExpertColumns = 32;

// What `shared` asks for.
inline GemmArgs shared_product(const ExpertGemmArgs& args) {
  GemmArgs product{};
  product.counts = args.counts;
  product.x = args.shared.x;
  product.weight = args.shared.weight;
  product.y = args.shared.y;
  product.bias = args.shared.bias;
  product.row_kind = RowKind::kToken;
  product.max_rows = args.max_rows;
  product.n = args.shared.n;
  product.k = args.shared.k;
  product.dtype = args.dtype;
  product.out_dtype = args.gated != 0 ? args.dtype : DType::kF32;
  product.gated = args.gated;
  product.activation = args.activation;
  return product;
}

void expert_gemm(Queue& queue, const ExpertGemmArgs& args);

}  // namespace foretoken
