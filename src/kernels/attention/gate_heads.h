#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation_math.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What becomes of a number before it multiplies what a head attended to.
enum class HeadGate : int32_t {
  kSigmoid,   // 1 / (1 + exp(-g))
  kSoftplus,  // log(1 + exp(g)) (Laguna)
};

// x[r][h][i] *= gate(gates[r][h]), or gate(gates[r][h][i]) where each element has its own; in
// place, rounded once, for the live token rows (gated attention, Qiu et al. 2025).
struct GateHeadsArgs {
  static constexpr Op kOp = Op::kGateHeads;
  const StepCounts* counts;
  void* x;             // [max_rows, num_heads * head_dim] of dtype
  const float* gates;  // [max_rows, num_heads], or as wide as x
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;
  int32_t each_element;  // 1: gates are as wide as x
  HeadGate gate;
  DType dtype;  // kF32 or kBF16
};

// log(1 + exp(x)) with a relative error below 1e-6, the same bits on both devices.
FT_HD_INLINE float gate_softplus(float x) {
  const float e = sample_math::exp_nonpositive(-activation_math::magnitude(x));
  const float u = sample_math::add(1.0f, e), rest = sample_math::sub(u, 1.0f);
  // log(u) errs by what 1 + e lost, which the quotient makes up for.
  const float log =
      rest == 0.0f ? e : sample_math::mul(sample_math::log_unit(u), sample_math::div(e, rest));
  return sample_math::add(x < 0.0f ? 0.0f : x, log);
}

FT_HD_INLINE float head_gate(HeadGate gate, float x) {
  return gate == HeadGate::kSoftplus ? gate_softplus(x) : activation_math::sigmoid(x);
}

void gate_heads(Queue& queue, const GateHeadsArgs& args);

}  // namespace foretoken
