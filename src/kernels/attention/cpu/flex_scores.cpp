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
  if (a.of_heads.num_kv_heads > 0) return 0;
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

namespace {

// Up to kFlexLanes scores; whether one is left.
bool apply_to_keys(const FlexProgram& program, const FlexPlace& place, float* scores, int count) {
  FlexRoom room;
  float padded[kFlexLanes] = {};
  std::copy(scores, scores + count, padded);
  if (!program.score.steps.empty()) {
    const FlexValues& changed = evaluate(program.score, place, padded, room);
    std::copy(changed.numbers, changed.numbers + count, scores);
  }
  const int32_t* seen =
      program.mask.steps.empty() ? nullptr : evaluate(program.mask, place, padded, room).integers;
  bool sees_any = false;
  for (int i = 0; i < count; ++i) {
    // No number is no score.
    if ((seen != nullptr && seen[i] == 0) || std::isnan(scores[i])) scores[i] = kHiddenScore;
    scores[i] = std::min(scores[i], std::numeric_limits<float>::max());
    sees_any = sees_any || scores[i] != kHiddenScore;
  }
  return sees_any;
}

// Entries from one on whose positions follow each other.
struct KeyRun {
  int first_key;
  int count;
};
KeyRun keys_from(const AttentionArgs& a, int64_t row, int entry, int count) {
  if (a.of_heads.begins == nullptr) return {position_of_entry(a.kv, entry), count};
  const int place = entry % a.kv.block_size;
  const int64_t page = int64_t{a.row_slot[row]} * a.max_blocks + entry / a.kv.block_size;
  return {a.of_heads.begins[page] + position_of_entry(a.kv, place),
          std::min(count, a.kv.block_size - place)};
}

}  // namespace

bool apply_flex(const AttentionArgs& a, const FlexScores& x) {
  const int heads = std::max(a.of_heads.num_kv_heads, 1);
  const bool of_tokens = a.of_heads.num_kv_heads == 0;
  const int position = of_tokens ? a.positions[x.row] : a.of_heads.positions[x.row / heads];
  const int head = a.first_head + static_cast<int>(x.row % heads) * a.num_heads + x.head;
  FlexOfRequest of_request;
  if (a.flex->of_requests != nullptr && of_tokens) {
    of_request = flex_of_words(a.flex->of_requests + int64_t{a.row_slot[x.row]} * kMaxFlexWords);
  }
  bool sees_any = false;
  for (int begin = 0; begin < x.count;) {
    const KeyRun run =
        keys_from(a, x.row, x.first_entry + begin, std::min(kFlexLanes, x.count - begin));
    const FlexPlace place{position,     run.first_key,     head,
                          x.prompt_end, a.kv.context_size, of_request};
    sees_any = apply_to_keys(*a.flex, place, x.scores + begin, run.count) || sees_any;
    begin += run.count;
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
