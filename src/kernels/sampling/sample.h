#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 6a: one sample for each live logits row, from the target exactly as without
// speculation. Row i of this call is logits row g = row_offset + i, token row logits_rows[g] at
// position p of slot s; it samples the token of position p + 1. A scored row (p + 1 < len) takes
// the known token of position p + 1 instead.
//  1. when p + 1 < min_len: the stop ids are masked (-inf);
//  2. temperature 0: the highest logit, ties to the lowest id. Otherwise, with t = temperature:
//     min_p keeps the ids with w >= min_p, w = exp((l - max) / t);
//     top_k keeps the ids whose logit is at least the k-th highest (ties all stay); top_p then
//     keeps the ids whose logit is at least the highest threshold whose kept mass reaches top_p of
//     the mass left by min_p and top_k (ties all stay); mass = round(exp((l - max) / t) * 2^30) as
//     integers, so that no order of summation matters;
//  3. the id with the smallest -log1p(-v) / w, w = exp((l - max) / t), over the kept ids with
//     w > 0, ties to the lowest id; v = min((r + 0.5) 2^-32, 1 - 2^-24), r = word (id mod 4) of
//     Philox with counter (id / 4, p + 1, choice, kSampleTarget) and key seed.
// A row with a NaN, or with every id masked or at -inf, samples -1.
//
// Example: t 1, logits 2.0 1.0 1.0 0.0, whose w are 1, 0.37, 0.37, 0.14. top_k 2 keeps the first
// three (the second highest is 1.0, twice); of their mass of 1.74 top_p 0.5 asks for 0.87, which
// the first has alone. With top_p 0.6 (1.04) the threshold falls to 1.0 and all three stay.
struct SampleArgs {
  static constexpr Op kOp = Op::kSample;
  const float* logits;  // [max_rows, vocab]
  StepTensors tensors;  // writes `sampled` at row_offset + i
  BatchState batch;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

// Purposes of noise (the last counter word), so that no two uses share a number.
inline constexpr uint32_t kSampleTarget = 0;

void sample(Queue& queue, const SampleArgs& args);

}  // namespace foretoken
