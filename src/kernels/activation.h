#pragma once
#include <cstdint>

namespace foretoken {

enum class Activation : int32_t {
  kSilu,      // x / (1 + exp(-x))
  kGelu,      // x * (1 + erf(x / sqrt(2))) / 2
  kGeluTanh,  // x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  // Of MLPs without a gate (kernels/activate.h), the first also of the op gated_act:
  kReluSquared,  // max(x, 0)^2 (So et al. 2021)
  kXielu,        // a x^2 + b x for x > 0, else n (expm1(min(x, e)) - x) + b x (Huang and Schlag
                 // 2024), with a = softplus(p[0]), b = p[2], n = b + softplus(p[1]), e = p[3]
  kRelu,         // max(x, 0); also of experts and of the op gated_act
  // Of experts (gpt-oss, Step 3.5) and of the op gated_act: g sigmoid(alpha g) (u + shift) of
  // g = min(gate, limit) and u = clamp(up, -up_limit, up_limit).
  kClampedSilu,
  // Of the same (Kimi K3): b tanh(gate / b) sigmoid(gate) l tanh(up / l), or the up as it is, of
  // b = limit and l = up_limit, where that is above 0.
  kSitu,
  // Of the op activate alone (what numbers of low rank pass in RWKV 7):
  kTanh,
  kSigmoid,
  kGeluShare,  // the share of x that GELU passes; of experts, whose gates are then their ups
};

// What an MLP with a gate may have.
constexpr bool has_gated_form(Activation activation) { return activation <= Activation::kGeluTanh; }
// What experts may have.
constexpr bool has_expert_form(Activation activation) {
  return has_gated_form(activation) || activation == Activation::kClampedSilu ||
         activation == Activation::kSitu || activation == Activation::kRelu ||
         activation == Activation::kGeluShare;
}

// What reads the numbers of GateClamp.
constexpr bool has_gate_numbers(Activation activation) {
  return activation == Activation::kClampedSilu || activation == Activation::kSitu;
}

// The numbers of kClampedSilu and kSitu.
struct GateClamp {
  float limit = 7;
  float alpha = 1.702f;
  float up_limit = 7;
  float shift = 1;
};
// What the op gated_act may have where the gates do not come from a gated product.
constexpr bool has_gated_act(Activation activation) {
  return has_expert_form(activation) || activation == Activation::kReluSquared;
}

}  // namespace foretoken
