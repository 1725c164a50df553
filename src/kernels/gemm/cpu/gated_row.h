#pragma once
#include <cstdint>

#include "kernels/activation.h"

namespace foretoken::cpu {

// `size` gates and as many ups of one row. Biases are added first; null: none.
struct GatedRow {
  const float* gate;
  const float* up;
  const float* gate_bias;
  const float* up_bias;
  int size;
  GateClamp clamp = {};  // where has_gate_numbers
};

// out[i] = activation(gate[i]) * up[i], or what kClampedSilu or kSitu makes of both, rounded once
// to the type of out; uint16_t is bfloat16.
void write_gated(Activation activation, const GatedRow& row, float* out);
void write_gated(Activation activation, const GatedRow& row, uint16_t* out);

}  // namespace foretoken::cpu
