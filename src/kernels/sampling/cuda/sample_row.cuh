#pragma once
#include <cstdint>

#include "kernels/cuda/common.cuh"
#include "kernels/sample_math.h"
#include "kernels/sampling/cuda/row_search.cuh"
#include "kernels/sampling/cuda/sample_team.cuh"
#include "kernels/sampling/sample.h"

// How a team samples one row of logits.
namespace foretoken::cuda {

// (score, id) of the best id among this thread's; scores are not negative, so their bits are
// ordered like their values.
template <int Size>
__device__ uint64_t race(const MaskedRow& row, const SlotParams& params, float max,
                         uint32_t threshold, int position) {
  uint64_t best = ~uint64_t{0};
  float best_score = INFINITY;
  const float inverse = fminf(1.0f / params.temperature, 3e38f);
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
    float most[4];  // that the weights can be
    bool any = false;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const bool kept = sample_math::ordered_key(logits[j]) >= threshold;
      most[j] = kept ? fmaf(__expf((logits[j] - max) * inverse), 1.01f, 1e-37f) : 0.0f;
      any |= most[j] > 0.0f;
    }
    if (!any) return;
    const Philox4 noise =
        sample_math::noise_words(id / 4, position, params.choice, kSampleTarget, params.seed);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      // -log1p(-v) >= v: most ids lose before the weight and the logarithm; the margins cover the
      // rounding.
      const float bound = sample_math::unit_from_word(noise.v[j]) * 0.999f;
      if (most[j] <= 0.0f || bound > best_score * most[j]) continue;
      const float weight = sample_math::weight_of(logits[j], max, params.temperature);
      if (weight <= 0.0f || weight < params.min_p) continue;
      const float score = sample_math::race_score(noise.v[j], weight);
      const uint64_t key =
          (uint64_t{sample_math::bits_of(score)} << 32) | static_cast<uint32_t>(id + j);
      if (key < best) {
        best = key;
        best_score = score;
      }
    }
  });
  return best;
}

// The highest (ordered key, ~id) of the row's ids, whose first one has the number `first_id`: ties
// go to the lowest id. All ones: some logit is invalid.
template <int Size>
__device__ uint64_t likeliest_key(const MaskedRow& row, int first_id, const Team<Size>& team) {
  uint64_t highest = 0;
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (id + j >= row.vocab) break;
      uint64_t key = (uint64_t{sample_math::ordered_key(logits[j])} << 32) |
                     ~static_cast<uint32_t>(first_id + id + j);
      if (sample_math::is_invalid_logit(logits[j])) key = ~uint64_t{0};
      highest = key > highest ? key : highest;
    }
  });
  return team.reduce(highest, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
}

// The id that `row` samples; -1 for a row with a NaN or without an id to sample.
template <int Size>
__device__ int32_t sample_row(const MaskedRow& row, const SlotParams& params, int position,
                              const Team<Size>& team) {
  const uint64_t highest = likeliest_key<Size>(row, 0, team);
  const auto id_of_highest = static_cast<int32_t>(~static_cast<uint32_t>(highest));
  if (highest == ~uint64_t{0} || (highest >> 32) <= sample_math::kKeyOfMinusInf) return -1;
  if (params.temperature <= 0.0f) return id_of_highest;
  const float max = row.logits[id_of_highest];
  const uint32_t threshold = kept_threshold<Size>(row, params, max, team);
  const uint64_t winner = team.reduce(race<Size>(row, params, max, threshold, position),
                                      [](uint64_t a, uint64_t b) { return a < b ? a : b; });
  return static_cast<int32_t>(winner & 0xffffffffu);
}

}  // namespace foretoken::cuda
