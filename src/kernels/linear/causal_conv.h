#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxConvWidth = 8;

// A causal convolution over the positions of each sequence, each channel by itself: the row at
// position p leaves
//   out[c] = activation(bias[c] + sum over j < width of weights[c][j] * in[p - width + 1 + j][c]),
// in the order of j, where in[p][c] = x[c] (times x_gate[c]) of its row and zero before position 0;
// times out_gate[c], where there is one; for the live token rows.
// Rows of one sequence lie side by side at consecutive positions, the first at any position that
// its rows have reached or at an earlier one. What lies before it comes from `history`: the input
// of position p is row p % history_rows of the slot. The op leaves its own rows there, of each
// sequence the last history_rows. Rows that are taken back need nothing: they are written anew
// before they are read, as long as history_rows is at least width - 1 and the rows that may be
// taken back at once, which are the drafts of a step and the last known row before them.
struct CausalConvArgs {
  static constexpr Op kOp = Op::kCausalConv;
  const StepCounts* counts;
  const float* x;            // [max_rows, stride], the first channel
  const float* x_gate;       // the same, or null
  const float* out_gate;     // the same, or null
  const float* weights;      // [channels, width]
  const float* bias;         // [channels] or null
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  float* history;            // [slots + 1, history_rows, channels]
  void* out;                 // [max_rows, channels] of out_dtype
  int32_t stride;
  int32_t max_rows;
  int32_t channels;
  int32_t width;  // 2 to kMaxConvWidth
  int32_t history_rows;
  int32_t silu;     // 1: the activation is SiLU; 0: there is none
  DType out_dtype;  // kF32 or kBF16
};

void causal_conv(Queue& queue, const CausalConvArgs& args);

}  // namespace foretoken
