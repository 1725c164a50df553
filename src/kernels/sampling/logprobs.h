#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// After sampling: for each live logits row whose slot wants logprobs, the log-probability and rank
// of the sampled or scored id and the min(num_logprobs, vocab, limits.max_top) likeliest ids, from
// the unshaped logits l:
//   logprob(i) = l_i - max - log(sum_j exp(l_j - max)), the sum of integers round(w 2^40), so that
//   its order does not matter; rank = 1 + number of ids with a greater logit; alternatives by
//   falling logit, ties to the lowest id. -inf logits have log-probability -inf.
// A row with a sampled id of -1, with a NaN or a +inf, or without any finite logit, and every row
// without the wish get num_top = kNoLogprobs. Logits rows beyond limits.max_rows are left out.
struct LogprobsArgs {
  static constexpr Op kOp = Op::kLogprobs;
  const float* logits;  // [max_rows, vocab]
  const float* raw;     // [max_rows, vocab] rows that keep_raw kept, read in place of shaped ones
  StepTensors tensors;
  const SlotParams* params;
  void* result;  // device; writes rows and top at row_offset + i
  ResultLimits limits;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void logprobs(Queue& queue, const LogprobsArgs& args);

}  // namespace foretoken
