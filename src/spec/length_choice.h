#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "spec/acceptance_rates.h"

// How many drafts each sequence of a step gets, chosen on the device by what its own rates promise
// and what token rows cost (kernels/draft/choose_lengths.h). Integers only: both devices choose the
// same.
namespace foretoken::spec {

struct LevelConstants {
  // Levels of survival, by which drafts of all sequences are sorted. Fewer, and unlike drafts stand
  // or fall together; more, and counting them takes longer than they are worth.
  static constexpr int32_t kNumLevels = 256;
  // Gain of a token that is sure; level_gain counts in this unit and must reach it at the top.
  static constexpr int32_t kTokenGain = 512;
  // More spans than a step has; probe_priority needs room for them.
  static constexpr int32_t kMaxSpans = 1 << 20;
};

// The most drafts that a sequence which goes on can use, so that none lies at or behind max_len,
// nor behind what the drafter can compute.
struct DraftRoom {
  int32_t granted;           // by the plan
  int32_t max_draft_tokens;  // the request's own bound
  int32_t len;               // known tokens
  int32_t max_len;           // of the sequence
  int32_t draft_max_len;     // positions that the drafter can compute
};

FT_HD inline int32_t max_draft_tokens(const DraftRoom& room) {
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  int64_t most = least(least(room.granted, room.max_draft_tokens), kMaxDraftTokens);
  most = least(most, int64_t{room.max_len} - room.len - 1);
  most = least(most, int64_t{room.draft_max_len} - room.len + 1);
  return most > 0 ? static_cast<int32_t>(most) : 0;
}

// Drafts that a sequence gets whatever they cost.
FT_HD inline int32_t least_drafts(const DraftRates& rates, int32_t most) {
  return most > 0 && wants_probe(rates) ? 1 : 0;
}

// Which sequence is the probe of a drafter that wants one and whose sequences are all too young for
// one of their own: the one with the highest priority, which goes longest without drafts, the first
// among equals. 0: it cannot be.
FT_HD inline int32_t probe_priority(const DraftRates& rates, int32_t most, int32_t span) {
  if (most == 0 || wants_probe(rates)) return 0;
  return (rates.since_draft + 1) * LevelConstants::kMaxSpans - span;
}

FT_HD inline int32_t level_of(int32_t survival) { return survival / LevelConstants::kNumLevels; }
// Expected tokens of a draft, in 1/kTokenGain.
FT_HD inline int32_t level_gain(int32_t level) { return 2 * level + 1; }

// Drafts whose survival is at least `lowest_level`, at least `least` and at most `most`.
FT_HD inline int32_t drafts_down_to(const DraftRates& rates, int32_t least, int32_t most,
                                    int32_t lowest_level) {
  int32_t survival = RateConstants::kOne;
  int32_t count = 0;
  while (count < most) {
    survival = next_survival(survival, rates.rates[count]);
    if (count >= least && level_of(survival) < lowest_level) break;
    ++count;
  }
  return count;
}

// Time of a target step of so many rows and of the draft passes.
struct StepCost {
  const int32_t* row_ns;
  int32_t num_row_ns;
  int32_t draft_ns;
};
FT_HD inline int64_t cost_of(const StepCost& cost, int64_t rows) {
  const int64_t last = cost.num_row_ns - 1;
  const int64_t ns = int64_t{cost.row_ns[rows < last ? rows : last]} + cost.draft_ns;
  return ns > 0 ? ns : 1;
}

// The lowest level to draft at, so that expected tokens over time are highest; kNumLevels: none.
// The fewest drafts win a tie. Example: two sequences, whose drafts survive with chances of 0.9 and
// 0.8, and of 0.5 and 0.1; the draft passes take 1 ms, and 2 / 3 / 4 / 5 / 6 rows 4.0 / 4.1 / 4.2 /
// 4.8 / 6.0 ms. From the likeliest down: no draft 2 tokens in 5 ms (0.40 each ms), one 2.9 in 5.1
// (0.57), two 3.7 in 5.2 (0.71), three 4.2 in 5.8 (0.72), four 4.3 in 7 (0.61). The level of 0.5 is
// the lowest: the first sequence gets both of its drafts and the second one. `counts` [kNumLevels]
// are the drafts of each level beyond `least_drafts` that are made anyway, which bring
// `least_gain`.
FT_HD inline int32_t lowest_level(const int32_t* counts, int32_t num_sequences,
                                  int32_t least_drafts, int32_t least_gain, const StepCost& cost) {
  int64_t rows = int64_t{num_sequences} + least_drafts;
  int64_t gain = int64_t{num_sequences} * LevelConstants::kTokenGain + least_gain;
  int64_t best_gain = gain;
  int64_t best_ns = cost_of(cost, rows);
  int32_t best_level = LevelConstants::kNumLevels;
  for (int32_t level = LevelConstants::kNumLevels - 1; level >= 0; --level) {
    if (counts[level] == 0) continue;
    rows += counts[level];
    gain += int64_t{counts[level]} * level_gain(level);
    const int64_t ns = cost_of(cost, rows);
    if (gain * best_ns <= best_gain * ns) continue;
    best_gain = gain;
    best_ns = ns;
    best_level = level;
  }
  return best_level;
}

}  // namespace foretoken::spec
