#pragma once
#include "kernels/activation.h"
#include "kernels/sample_math.h"

// Functions of the models' activations, shared by the CPU and the CUDA kernels. As in sample_math.h
// every operation rounds once and none is contracted. A NaN gives a NaN.
namespace foretoken::activation_math {

using sample_math::add;
using sample_math::div;
using sample_math::exp_nonpositive;
using sample_math::mul;
using sample_math::sub;

// The same as div(a, b) for b in [1, 64] and a in [0, 1] that is 0, at least 2^-100, or divided by
// 1. On a GPU without the branch of a general division, so that many of them run at once.
FT_HD_INLINE float div_plain(float a, float b) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  inverse = fmaf(inverse, fmaf(-b, inverse, 1.0f), inverse);
  const float quotient = __fmul_rn(a, inverse);
  return fmaf(fmaf(-b, quotient, a), inverse, quotient);
#else
  return div(a, b);
#endif
}

FT_HD_INLINE float magnitude(float x) { return x < 0.0f ? -x : x; }

// tanh(x) within 3 ulp (Cephes' polynomial near 0).
FT_HD_INLINE float tanh_of(float x) {
  const float a = magnitude(x);
  const float z = mul(x, x);
  float p = -5.70498872745e-3f;
  p = add(mul(p, z), 2.06390887954e-2f);
  p = add(mul(p, z), -5.37397155531e-2f);
  p = add(mul(p, z), 1.33314422036e-1f);
  p = add(mul(p, z), -3.33332819422e-1f);
  const float near = add(mul(mul(p, z), x), x);
  const float e = exp_nonpositive(mul(a, -2.0f));
  const float far = div(sub(1.0f, e), add(1.0f, e));
  return a < 0.625f ? near : (x < 0.0f ? -far : far);
}

// cap * tanh(x / cap), for inverse_cap = 1 / cap.
FT_HD_INLINE float soft_capped(float x, float cap, float inverse_cap) {
  return mul(cap, tanh_of(mul(x, inverse_cap)));
}

// x = 1 / (1 + exp(-x)) for each x, by the exponential of -|x| so that nothing overflows.
template <int N>
FT_HD_INLINE void sigmoid(float (&x)[N]) {
  float e[N];
  for (int i = 0; i < N; ++i) e[i] = -magnitude(x[i]);
  exp_nonpositive(e);
  for (int i = 0; i < N; ++i) x[i] = div_plain(x[i] < 0.0f ? e[i] : 1.0f, add(1.0f, e[i]));
}

FT_HD_INLINE float sigmoid(float x) {
  float one[1] = {x};
  sigmoid(one);
  return one[0];
}

// The same as gates use it: on a GPU by its own exponential, within 2e-6 of it for |x| up to 20 and
// a sixth of the operations, which products of many rows otherwise wait for.
template <int N>
FT_HD_INLINE void gate_sigmoid(float (&x)[N]) {
#ifdef __CUDA_ARCH__
  for (int i = 0; i < N; ++i) {
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(__fmul_rn(x[i], -1.44269504088896341f)));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x[i]) : "f"(__fadd_rn(1.0f, e)));
  }
#else
  sigmoid(x);
#endif
}

// The share of x that passes: silu(x) = x * sigmoid(x), and so on.

// Normal distribution function. Its tail is exp(-x^2 / 2) t P(t) with t = 1 / (1 + 0.35 |x|), P
// fitted at Chebyshev nodes over |x| <= 13.3; relative error of the tail 4e-7.
FT_HD_INLINE float gelu_share(float x) {
  const float a = magnitude(x);
  const float bounded = a > 64.0f ? 64.0f : a;  // the tail is 0 there
  const float t = div_plain(1.0f, add(1.0f, mul(bounded, 0.35f)));
  float p = -0.02957654371857643f;
  p = add(mul(p, t), 0.14606903493404388f);
  p = add(mul(p, t), -0.26003289222717285f);
  p = add(mul(p, t), 0.1640634983778f);
  p = add(mul(p, t), -0.026422694325447083f);
  p = add(mul(p, t), 0.10687646269798279f);
  p = add(mul(p, t), 0.11949814110994339f);
  p = add(mul(p, t), 0.13990597426891327f);
  p = add(mul(p, t), 0.13961902260780334f);
  const float tail = mul(mul(p, t), exp_nonpositive(mul(mul(a, a), -0.5f)));
  return x < 0.0f ? tail : sub(1.0f, tail);
}

// What sigmoid makes (1 + tanh(u)) / 2 of, u = sqrt(2 / pi) (x + 0.044715 x^3).
FT_HD_INLINE float gelu_tanh_slope(float x) {
  return mul(x, add(mul(mul(x, x), 0.0713548162726f), 1.59576912160573f));
}

FT_HD_INLINE float gelu_tanh_share(float x) { return sigmoid(gelu_tanh_slope(x)); }

// Each gate = activation(gate) * up; side by side, see exp_nonpositive.
template <Activation kActivation, int N>
FT_HD_INLINE void gate_all(float (&gates)[N], const float (&ups)[N]) {
  float shares[N];
  for (int i = 0; i < N; ++i) {
    shares[i] = kActivation == Activation::kSilu       ? gates[i]
                : kActivation == Activation::kGeluTanh ? gelu_tanh_slope(gates[i])
                                                       : gelu_share(gates[i]);
  }
  if constexpr (kActivation != Activation::kGelu) gate_sigmoid(shares);
  for (int i = 0; i < N; ++i) gates[i] = mul(mul(gates[i], shares[i]), ups[i]);
}

// activation(gate) * up.
template <Activation kActivation>
FT_HD_INLINE float gated(float gate, float up) {
  float gates[1] = {gate};
  gate_all<kActivation>(gates, {up});
  return gates[0];
}
// Activation::kRelu. A NaN becomes 0.
FT_HD_INLINE float rectified_gated(float gate, float up) {
  return mul(gate > 0.0f ? gate : 0.0f, up);
}
// Activation::kGeluShare.
FT_HD_INLINE float share_gated(float gate, float up) { return mul(gelu_share(gate), up); }
FT_HD_INLINE float gated(Activation activation, float gate, float up) {
  switch (activation) {
    case Activation::kGeluShare:
      return share_gated(gate, up);
    case Activation::kRelu:
      return rectified_gated(gate, up);
    case Activation::kSilu:
      return gated<Activation::kSilu>(gate, up);
    case Activation::kGelu:
      return gated<Activation::kGelu>(gate, up);
    default:
      return gated<Activation::kGeluTanh>(gate, up);
  }
}

// A NaN stays one.
FT_HD_INLINE float at_most(float x, float limit) { return x > limit ? limit : x; }
FT_HD_INLINE float at_least(float x, float limit) { return x < limit ? limit : x; }

// Activation::kClampedSilu.
FT_HD_INLINE float clamped_gated(const GateClamp& clamp, float gate, float up) {
  gate = at_most(gate, clamp.limit);
  up = at_least(at_most(up, clamp.up_limit), -clamp.up_limit);
  return mul(add(up, clamp.shift), mul(gate, sigmoid(mul(gate, clamp.alpha))));
}

// Activation::kSitu.
FT_HD_INLINE float situ_gated(const GateClamp& clamp, float gate, float up) {
  const float bounded = mul(clamp.limit, tanh_of(div(gate, clamp.limit)));
  if (clamp.up_limit > 0.0f) up = mul(clamp.up_limit, tanh_of(div(up, clamp.up_limit)));
  return mul(mul(bounded, sigmoid(gate)), up);
}

// Of those that read the numbers (has_gate_numbers).
FT_HD_INLINE float numbered_gated(Activation activation, const GateClamp& clamp, float gate,
                                  float up) {
  return activation == Activation::kSitu ? situ_gated(clamp, gate, up)
                                         : clamped_gated(clamp, gate, up);
}

}  // namespace foretoken::activation_math
