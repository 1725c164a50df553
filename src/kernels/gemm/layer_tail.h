#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
#include "kernels/gemm/gemm.h"
#include "kernels/op.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/step_types.h"

namespace foretoken {

// What follows attention in a decoder layer, up to the attention of the next one: six ops in one,
// with the bits that they have one after the other (layer_tail_ops).
//   residual += x o^T + o_bias;  normed = norm(residual) * mlp_norm
//   gated = activation(normed gate^T) * (normed up^T);  delta = gated down^T + down_bias
// and with a next layer
//   residual += delta;  normed = norm(residual) * next_norm;  qkv_out = normed qkv^T + qkv_bias
// Without one delta is still to be added. "act" stands for dtype. Live rows: counts->num_rows.
struct LayerTailArgs {
  static constexpr Op kOp = Op::kLayerTail;
  static constexpr int kSyncWords = 5 * 32;
  const StepCounts* counts;
  const void* x;        // [max_rows, x_size] act; what attention left
  const void* o;        // weights, as of GemmArgs: [hidden, x_size]
  const void* gate_up;  // [2 * inner, hidden], packed as WeightOrder::kGateUp
  const void* down;     // [hidden, inner]
  const void* qkv;      // [qkv_size, hidden]; null: there is no next layer
  const float* o_bias;  // biases as of GemmArgs, or null
  const float* gate_up_bias;
  const float* down_bias;
  const float* qkv_bias;
  const float* mlp_norm;   // [hidden]
  const float* next_norm;  // [hidden]
  float* residual;         // [max_rows, hidden]
  float* delta;            // [max_rows, hidden]
  void* normed;            // [max_rows, hidden] act
  void* gated;             // [max_rows, inner] act
  float* qkv_out;          // [max_rows, qkv_size]
  uint32_t* sync;          // [kSyncWords], zero before the first op that is given it
  int32_t max_rows;
  int32_t hidden;
  int32_t x_size;
  int32_t inner;
  int32_t qkv_size;
  float eps;
  DType dtype;  // kF32 or kBF16
  Activation activation = Activation::kSilu;
};

// The ops that it stands for, in their order; the last two only with a next layer.
struct LayerTailOps {
  GemmArgs o;
  RmsNormArgs mlp_norm;
  GemmArgs gate_up;
  GemmArgs down;
  RmsNormArgs next_norm;
  GemmArgs qkv;
};

constexpr LayerTailOps layer_tail_ops(const LayerTailArgs& a) {
  const auto product = [&a](const void* x, int32_t k, const void* weight, const float* bias,
                            void* y, int32_t n) {
    return GemmArgs{a.counts, x,          weight, y, bias,    RowKind::kToken,
                    0,        a.max_rows, n,      k, a.dtype, DType::kF32};
  };
  const auto norm = [&a](const float* weight) {
    return RmsNormArgs{a.counts, a.residual, a.delta,  weight, a.normed, nullptr,
                       0,        a.max_rows, a.hidden, a.eps,  a.dtype};
  };
  LayerTailOps ops{product(a.x, a.x_size, a.o, a.o_bias, a.delta, a.hidden),
                   norm(a.mlp_norm),
                   product(a.normed, a.hidden, a.gate_up, a.gate_up_bias, a.gated, 2 * a.inner),
                   product(a.gated, a.inner, a.down, a.down_bias, a.delta, a.hidden),
                   norm(a.next_norm),
                   product(a.normed, a.hidden, a.qkv, a.qkv_bias, a.qkv_out, a.qkv_size)};
  ops.gate_up.out_dtype = a.dtype;
  ops.gate_up.gated = 1;
  ops.gate_up.activation = a.activation;
  return ops;
}

// use(op) for each of them, a GemmArgs or a RmsNormArgs.
template <class Use>
void for_each_tail_op(const LayerTailArgs& args, const Use& use) {
  const LayerTailOps ops = layer_tail_ops(args);
  use(ops.o);
  use(ops.mlp_norm);
  use(ops.gate_up);
  use(ops.down);
  if (args.qkv == nullptr) return;
  use(ops.next_norm);
  use(ops.qkv);
}

void layer_tail(Queue& queue, const LayerTailArgs& args);

}  // namespace foretoken
