#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/latent/compressed_entry.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Heads whose last elements carry the position (DeepSeek V4), of the live token rows. Each head of
// a row, head_dim floats,
// 1. with norm_eps > 0 becomes head / sqrt(mean(head^2) + norm_eps), times `norm` where that is
//    given;
// 2. its last rope_dim elements turn in pairs that lie side by side: of pair i, by the angle
//    (position + position_shift) * inv_freq[i], (a, b) becomes (a cos - b sin, b cos + a sin), with
//    both factors times `scaling`; or by that angle back;
// 3. it goes to the row's place in `out`, or to the entry that `entry_slot` says, if this rank has
//    it.
struct TurnTailsArgs {
  static constexpr Op kOp = Op::kTurnTails;
  const StepCounts* counts;
  const float* x;             // [max_rows, x_stride], heads first
  void* out;                  // [max_rows, num_heads, head_dim] of dtype, or entries of `format`
  const int32_t* positions;   // [max_rows]
  const int32_t* entry_slot;  // [max_rows], of one head; or null
  const float* inv_freq;      // [rope_dim / 2]
  const float* norm;          // [head_dim] or null
  int32_t x_stride;
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;  // at most kMaxTailHead
  int32_t rope_dim;  // even, at most kMaxHeadDim; 0: nothing turns
  float scaling;     // of cosines and sines
  float norm_eps;    // 0: heads are not normed
  DType dtype;       // kF32 or kBF16
  int32_t position_shift = 0;
  KvFormat format = KvFormat::kPlain;  // codes with entry_slot alone
  int32_t context_size = 1;            // as of KvLayer
  int32_t context_rank = 0;
  bool back = false;
};

// Whether the row's head goes anywhere.
FT_HD inline bool keeps_tail(const TurnTailsArgs& a, int64_t row) {
  return a.entry_slot == nullptr || a.entry_slot[row] % a.context_size == a.context_rank;
}

FT_HD inline EntryForm entry_form(const TurnTailsArgs& a) {
  return {a.format, a.dtype, a.head_dim, a.rope_dim};
}

inline constexpr int kMaxTailHead = 8192;

void turn_tails(Queue& queue, const TurnTailsArgs& args);

}  // namespace foretoken
