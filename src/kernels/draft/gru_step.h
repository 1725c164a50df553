#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// A step of a gated recurrent unit (Cho et al. 2014, as PyTorch has it, without biases) for the
// live token rows, of which each goes on with the state of its slot. x and h are what its matrices
// make of the row's input and of that state, with [r | z | n] side by side:
//   r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), n = tanh(x_n + r h_n)
//   state = (1 - z) n + z state
struct GruStepArgs {
  static constexpr Op kOp = Op::kGruStep;
  const StepCounts* counts;
  const float* of_input;    // x, [max_rows, 3 size]
  const float* of_state;    // h, the same; null: the states are zeros, whatever stands there
  const int32_t* row_slot;  // [max_rows], each slot at most once
  float* states;            // [slots, size]
  int32_t max_rows;
  int32_t size;
};

void gru_step(Queue& queue, const GruStepArgs& args);

}  // namespace foretoken
