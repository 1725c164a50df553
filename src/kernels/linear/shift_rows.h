#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Mixes each row with the one at the position before it (the token shift of RWKV, Peng et al.
// 2023), `num_mixes` times, for the live token rows:
//   out[j] = x + (before - x) * mixes[j],
// where what is before position 0 is zero. Runs and history as of CausalConvArgs with a width of 2:
// the row of position p is row p % history_rows of the slot, at `history` of rows of
// history_stride.
struct ShiftRowsArgs {
  static constexpr Op kOp = Op::kShiftRows;
  const StepCounts* counts;
  const void* x;             // [max_rows, size] of dtype
  const float* mixes;        // [num_mixes, size]
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  float* history;            // [slots + 1, history_rows, history_stride], the first column
  void* out;                 // [num_mixes, max_rows, size] of dtype, not x
  int32_t num_mixes;
  int32_t size;
  int32_t max_rows;
  int32_t history_rows;
  int32_t history_stride;
  DType dtype;  // kF32 or kBF16
};

void shift_rows(Queue& queue, const ShiftRowsArgs& args);

}  // namespace foretoken
