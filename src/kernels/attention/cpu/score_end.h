#pragma once
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"

namespace foretoken::cpu {

// What is done to scaled products of a query with the keys of entries that follow one another,
// before they become weights.
struct ScoreEnd {
  float softcap;                // 0: none
  float slope;                  // of AttentionArgs::slopes; 0: none
  int first;                    // position of the first key less that of the query
  int step = 1;                 // from the position of a key to that of the next one
  const float* bias = nullptr;  // of the head, of AttentionArgs::distance_bias; null: none
};

// Of query head `head` of a row at `position`, for keys from entry `first_entry` on.
inline ScoreEnd score_end(const AttentionArgs& a, int64_t head, int position, int first_entry) {
  return {a.softcap, a.slopes != nullptr ? a.slopes[head] : 0.0f,
          position_of_entry(a.kv, first_entry) - position, a.kv.context_size,
          a.distance_bias != nullptr ? a.distance_bias + head * kDistances : nullptr};
}

// Of `count` scores, each by itself.
FT_INLINE void end_scores(const ScoreEnd& end, float* scores, int count) {
  if (end.softcap > 0) soft_cap_all(scores, end.softcap, count);
  if (end.bias != nullptr) {
    for (int i = 0; i < count; ++i) scores[i] += end.bias[bias_index(end.first + i * end.step)];
  }
  if (end.slope == 0) return;
  for (int i = 0; i < count; ++i) {
    const int behind = end.first + i * end.step;
    scores[i] += end.slope * static_cast<float>(behind < 0 ? behind : -behind);
  }
}

}  // namespace foretoken::cpu
