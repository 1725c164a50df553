#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxScanState = 64;

// The scan of selective state spaces (Gu and Dao 2023, Mamba 1) for the live token rows: each
// channel of a sequence has d_state numbers h that decay at rates of their own,
//   h = exp(-rates * step) * h + step * x * keys;  out = sum of queries * h + skip * x,
// with step = softplus(steps) of the channel. Rows, runs, slots and what may be taken back are as
// of LinearAttentionArgs: `states` keeps h, and `pending` the updates [keys | x | step] of rows
// that may come again.
struct SelectiveScanArgs {
  static constexpr Op kOp = Op::kSelectiveScan;
  const StepCounts* counts;
  const float* x;            // [max_rows, channels]
  const float* steps;        // [max_rows, channels]
  const float* keys;         // [max_rows, maps_stride], the first of d_state, and so are queries
  const float* queries;      // the same
  const float* rates;        // [d_state, channels], none below 0
  const float* skip;         // [channels]
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  const SlotState* slots;    // [slots + 1], or null
  float* states;             // [slots + 1, d_state, channels]
  int32_t* committed;        // [slots + 1]
  float* pending;            // [slots + 1, pending_rows, update_size()]
  float* out;                // [max_rows, channels]
  int32_t maps_stride;
  int32_t max_rows;
  int32_t channels;
  int32_t d_state;       // at most kMaxScanState
  int32_t pending_rows;  // more than the drafts of a step

  FT_HD int32_t update_size() const { return d_state + 2 * channels; }
  FT_HD int64_t state_size() const { return int64_t{d_state} * channels; }
};

void selective_scan(Queue& queue, const SelectiveScanArgs& args);

}  // namespace foretoken
