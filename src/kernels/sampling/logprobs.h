#pragma once
#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Bit of SlotParams::num_logprobs: log-probabilities of the distribution that ids are drawn from,
// in place of the model's own.
inline constexpr int32_t kProcessedLogprobs = 1 << 30;

// Whether a slot with logprobs wants those.
FT_HD inline bool wants_processed(const SlotParams& params) {
  return params.num_logprobs != kNoLogprobs && (params.num_logprobs & kProcessedLogprobs) != 0;
}

// Alternatives that a slot with logprobs wants.
FT_HD inline int32_t num_alternatives(const SlotParams& params) {
  return params.num_logprobs & ~kProcessedLogprobs;
}

// After sampling: for each live logits row whose slot wants logprobs, the log-probability and rank
// of the sampled or scored id and the min(num_logprobs, vocab, limits.max_top) likeliest ids, from
// the unshaped logits l:
//   logprob(i) = l_i - max - log(sum_j exp(l_j - max)), the sum of integers round(w 2^40), so that
//   its order does not matter; rank = 1 + number of ids with a greater logit; alternatives by
//   falling logit, ties to the lowest id. -inf logits have log-probability -inf.
// A slot that wants_processed gets those of the distribution that step part 6a
// draws from, min_tokens aside: l are the shaped logits, the sum is that of w = exp((l - max) / t)
// over the ids that min_p, top_k and top_p keep (sample.h), logprob(i) = (l_i - max) / t -
// log(sum), and -inf for the others; temperature 0 keeps the highest logit, with t = 1. A row with
// a sampled id of -1, with a NaN or a +inf, or without any finite logit, and every row without the
// wish get num_top = kNoLogprobs. Logits rows beyond limits.max_rows are left out.
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
