#include "kernels/attention/cpu/flex_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/rows.h"
#include "kernels/flex/flex_value.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {

constexpr float kHiddenScore = -std::numeric_limits<float>::infinity();

int prompt_end(const AttentionArgs& a, int64_t row) {
  const int position = a.positions[row];
  const int32_t slot = a.row_slot[row];
  const int64_t first = row - position;
  if (first < 0 || a.row_slot[first] != slot || a.positions[first] != 0) return 0;
  // Rows of a sequence stand side by side.
  int64_t low = row;
  int64_t high = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    const bool same = a.row_slot[middle] == slot && a.positions[middle] == middle - first;
    (same ? low : high) = middle;
  }
  return static_cast<int>(low - first) + 1;
}

bool apply_flex(const FlexProgram& program, const FlexScores& x) {
  FlexRoom room;
  bool sees_any = false;
  for (int begin = 0; begin < x.count; begin += kFlexLanes) {
    const int count = std::min(kFlexLanes, x.count - begin);
    const FlexPlace place{x.position, x.first_key + begin * x.key_step, x.head, x.prompt_end,
                          x.key_step};
    float padded[kFlexLanes] = {};
    float* scores = x.scores + begin;
    std::copy(scores, scores + count, padded);
    if (!program.score.steps.empty()) {
      const FlexValues& changed = evaluate(program.score, place, padded, room);
      std::copy(changed.numbers, changed.numbers + count, scores);
    }
    const int32_t* seen =
        program.mask.steps.empty() ? nullptr : evaluate(program.mask, place, padded, room).integers;
    for (int i = 0; i < count; ++i) {
      // No number is no score.
      if ((seen != nullptr && seen[i] == 0) || std::isnan(scores[i])) scores[i] = kHiddenScore;
      scores[i] = std::min(scores[i], std::numeric_limits<float>::max());
      sees_any = sees_any || scores[i] != kHiddenScore;
    }
  }
  return sees_any;
}

void weigh_flex(float* scores, int count, float& highest, float& sum) {
  highest = *std::max_element(scores, scores + count);
  sum = 0;
  for (int i = 0; i < count; ++i) {
    const bool is_hidden = scores[i] == kHiddenScore;
    scores[i] = is_hidden ? 0.0f : sample_math::exp_nonpositive(scores[i] - highest);
    sum += scores[i];
  }
}

}  // namespace foretoken::cpu
