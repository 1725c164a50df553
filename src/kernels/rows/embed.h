#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "device/row_table.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// out[r] = table[token_ids[r]] * scale, in float, for the live rows. An id outside [0, vocab) reads
// row 0. With norm_weight also normed[r] = out[r] / sqrt(mean(out[r]^2) + eps) * norm_weight, as
// the op rms_norm makes it.
struct EmbedArgs {
  static constexpr Op kOp = Op::kEmbed;
  const StepCounts* counts;
  const int32_t* token_ids;  // [max_rows]
  RowTable table;            // [vocab, hidden] of `dtype`, or halves beside kF32
  float* out;                // [max_rows, hidden]
  int32_t max_rows;
  int32_t vocab;
  int32_t hidden;
  DType dtype;                         // of `normed`: kF32 or kBF16
  float scale = 1;                     // 1: off
  const float* norm_weight = nullptr;  // [hidden] or null
  void* normed = nullptr;              // [max_rows, hidden] of `dtype`
  float eps = 0;
};

void embed(Queue& queue, const EmbedArgs& args);

}  // namespace foretoken
