#pragma once
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"

namespace foretoken::cpu {

// What is done to scaled products of a query with keys at positions that follow one another, before
// they become weights.
struct ScoreEnd {
  float softcap;  // 0: none
  float slope;    // of AttentionArgs::slopes; 0: none
  int first;      // position of the first key less that of the query
};

// Of query head `head` of a row at `position`, for keys from `first_key` on.
inline ScoreEnd score_end(const AttentionArgs& a, int64_t head, int position, int first_key) {
  return {a.softcap, a.slopes != nullptr ? a.slopes[head] : 0.0f, first_key - position};
}

// Of `count` scores, each by itself.
FT_INLINE void end_scores(const ScoreEnd& end, float* scores, int count) {
  if (end.softcap > 0) soft_cap_all(scores, end.softcap, count);
  if (end.slope == 0) return;
  for (int i = 0; i < count; ++i) scores[i] += end.slope * static_cast<float>(end.first + i);
}

}  // namespace foretoken::cpu
