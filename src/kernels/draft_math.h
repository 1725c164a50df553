#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "base/philox.h"
#include "kernels/commit.h"
#include "kernels/draft_entries.h"
#include "kernels/step_types.h"

// The arithmetic of kernels/choose_lengths.h and of the synthetic rule of kernels/commit.h, shared
// by the CPU and the CUDA kernels. Integers only: both choose the same.

namespace foretoken::draft_math {

inline constexpr int32_t kRateOne = 65535;
inline constexpr int32_t kFirstRate =
    45875;  // 0.7: every draft of a drafter that nothing is known of
inline constexpr int32_t kSlotWindow = 32;      // verifications that a slot's rates look back on
inline constexpr int32_t kPriorWindow = 64;     // those that a drafter's prior looks back on
inline constexpr int32_t kUnseenWindow = 64;    // of rates whose drafts are not offered
inline constexpr int32_t kProbeRated = 4;       // most verifications that count beside a probe's
inline constexpr int32_t kMostRated = 1 << 20;  // num_rated and since_draft stay there
inline constexpr int32_t kProbeTokens = 64;     // without a draft before one is tried
inline constexpr int32_t kMostSpans = 1 << 20;  // more than a step has
inline constexpr int32_t kNumLevels = 256;      // of survival
inline constexpr int32_t kTokenGain = 512;      // gain of a sure token

// The coin of the rule synthetic for the draft at `position`.
FT_HD inline bool coin_accepts(uint32_t chance, int32_t position, const SlotParams& params) {
  if (chance == UINT32_MAX) return true;
  return philox4x32(0, static_cast<uint32_t>(position), static_cast<uint32_t>(params.choice),
                    kAcceptDraft, params.seed)
             .v[0] < chance;
}

// DraftRates::since_draft after a commit.
FT_HD inline int32_t since_draft_after(int32_t before, int32_t num_drafted, int32_t num_committed) {
  if (num_drafted > 0) return 0;
  return num_committed < kMostRated - before ? before + num_committed : kMostRated;
}

// --- Rates ---

// What a verification tells: drafts before `accepted` were accepted; draft `accepted` was not when
// `rejected`. A commit that was cut at a stop id or at max_len tells nothing about the drafts
// behind the cut.
struct Verification {
  int32_t drafted;
  int32_t accepted;
  bool rejected;
};

FT_HD inline Verification verification_of(const SpanResult& result) {
  const int32_t drafted = result.num_drafted;
  const int32_t accepted = result.num_accepted;
  return {drafted, accepted, accepted < drafted && result.num_committed > accepted};
}

// 1/share of the way towards `target`, rounded towards `rate`.
FT_HD inline uint16_t moved_rate(int32_t rate, int32_t target, int32_t share) {
  return static_cast<uint16_t>(rate + (target - rate) / share);
}

// The window of a state's rates; it opens over the first verifications.
FT_HD inline int32_t rate_share(int32_t num_rated, int32_t window) {
  return num_rated + 4 < window ? num_rated + 4 : window;
}

// Rates of drafts from `first` on, which were reached and not offered, rise towards the one before.
FT_HD inline void raise_unseen(DraftRates& state, int32_t first) {
  const int32_t share = rate_share(state.num_rated, kUnseenWindow);
  for (int32_t i = first > 0 ? first : 1; i < kMaxDrafts; ++i) {
    if (state.rates[i] < state.rates[i - 1]) {
      state.rates[i] = moved_rate(state.rates[i], state.rates[i - 1], share);
    }
  }
}

// Whether the slot drafts by its own prediction: others tell nothing of its drafts, nor it of
// theirs.
FT_HD inline bool is_predicted(const SlotParams& params) { return params.num_prediction > 0; }

// Rates that are not set yet: those of the prior, or where it has none kFirstRate.
FT_HD inline void start_rates(DraftRates& state, const DraftRates& prior) {
  for (int32_t i = 0; i < kMaxDrafts; ++i) {
    state.rates[i] = prior.num_rated > 0 ? prior.rates[i] : static_cast<uint16_t>(kFirstRate);
  }
}

FT_HD inline int32_t more_rated(int32_t num_rated, int32_t more) {
  return more < kMostRated - num_rated ? num_rated + more : kMostRated;
}

// A slot takes in one verification of v.drafted > 0 drafts.
FT_HD inline void rate_slot(DraftRates& state, const Verification& v) {
  const int32_t share = rate_share(state.num_rated, kSlotWindow);
  for (int32_t i = 0; i < v.accepted; ++i) {
    state.rates[i] = moved_rate(state.rates[i], kRateOne, share);
  }
  if (v.rejected) state.rates[v.accepted] = moved_rate(state.rates[v.accepted], 0, share);
  if (v.accepted == v.drafted) raise_unseen(state, v.drafted);
  state.num_rated = more_rated(state.num_rated, 1);
}

// The verifications of one step, over all slots of a drafter. Sums and a minimum: their order does
// not matter.
struct StepVerifications {
  int32_t accepted[kMaxDrafts];  // how often draft i was accepted
  int32_t rejected[kMaxDrafts];
  int32_t count;
  int32_t committed;     // tokens, of all its slots
  int32_t first_unseen;  // least number of drafts that were all accepted; kMaxDrafts: none were
};

// The prior takes in those of a step: each rate moves by one share a verification, towards their
// mean.
FT_HD inline void rate_prior(DraftRates& prior, const StepVerifications& step) {
  prior.since_draft = since_draft_after(prior.since_draft, step.count, step.committed);
  if (step.count == 0) return;
  if (prior.num_rated == 0) start_rates(prior, prior);
  const int32_t share = rate_share(prior.num_rated, kPriorWindow);
  for (int32_t i = 0; i < kMaxDrafts; ++i) {
    const int32_t tries = step.accepted[i] + step.rejected[i];
    if (tries == 0) continue;
    const int32_t rate = prior.rates[i];
    const auto mean = static_cast<int32_t>(int64_t{kRateOne} * step.accepted[i] / tries);
    const int32_t moves = tries < share ? tries : share;
    prior.rates[i] = static_cast<uint16_t>(rate + (mean - rate) * moves / share);
  }
  raise_unseen(prior, step.first_unseen);
  prior.num_rated = more_rated(prior.num_rated, step.count);
}

// --- Lengths ---

// Whether the slot has one row in the next step too: it sampled and goes on.
FT_HD inline bool goes_on(const SpanState& span, const SlotState& state) {
  return has_sampled(span) && state.finished == static_cast<int32_t>(DeviceFinish::kNone);
}

// The most drafts that a slot which goes on can use.
FT_HD inline int32_t most_drafts(const SlotState& state, const SlotParams& params, int32_t limit,
                                 int32_t draft_max_len) {
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  int64_t most = least(least(limit, params.max_drafts), kMaxDrafts);
  most = least(most, int64_t{params.max_len} - state.len - 1);
  most = least(most, int64_t{draft_max_len} - state.len + 1);
  return most > 0 ? static_cast<int32_t>(most) : 0;
}

// Whether what the rates say is so old that a draft is tried whatever it costs.
FT_HD inline bool wants_probe(const DraftRates& rates) { return rates.since_draft >= kProbeTokens; }

// What was seen before a rest counts little beside what a probe will tell.
FT_HD inline void expect_probe(DraftRates& rates) {
  if (wants_probe(rates) && rates.num_rated > kProbeRated) rates.num_rated = kProbeRated;
}

// Drafts that a slot gets whatever they cost.
FT_HD inline int32_t least_drafts(const SlotState& state, int32_t most) {
  return most > 0 && wants_probe(state.draft) ? 1 : 0;
}

// Which slot is the probe of a drafter that wants one and whose slots are all too young for one of
// their own: the one with the highest rank, which goes longest without drafts, the first among
// equals. 0: it cannot be.
FT_HD inline int32_t probe_rank(const SlotState& state, int32_t most, int32_t span) {
  if (most == 0 || wants_probe(state.draft)) return 0;
  return (state.draft.since_draft + 1) * kMostSpans - span;
}

// Chance, in 1/65535, that a draft is accepted whose predecessor survives with `survival`
// (kRateOne before the first).
FT_HD inline int32_t next_survival(int32_t survival, uint16_t rate) {
  return static_cast<int32_t>(static_cast<uint32_t>(survival) * rate / kRateOne);
}
FT_HD inline int32_t level_of(int32_t survival) { return survival / kNumLevels; }
// Expected tokens of a draft, in 1/kTokenGain.
FT_HD inline int32_t level_gain(int32_t level) { return 2 * level + 1; }

// Drafts whose survival is at least `lowest_level`, at least `least` and at most `most`.
FT_HD inline int32_t drafts_down_to(const DraftState& state, int32_t least, int32_t most,
                                    int32_t lowest_level) {
  int32_t survival = kRateOne;
  int32_t count = 0;
  while (count < most) {
    survival = next_survival(survival, state.rates[count]);
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
// The fewest drafts win a tie. `counts` [kNumLevels] are the drafts of each level beyond
// `least_drafts` that are made anyway, which bring `least_gain`.
FT_HD inline int32_t lowest_level(const int32_t* counts, int32_t num_slots, int32_t least_drafts,
                                  int32_t least_gain, const StepCost& cost) {
  int64_t rows = int64_t{num_slots} + least_drafts;
  int64_t gain = int64_t{num_slots} * kTokenGain + least_gain;
  int64_t best_gain = gain;
  int64_t best_ns = cost_of(cost, rows);
  int32_t best_level = kNumLevels;
  for (int32_t level = kNumLevels - 1; level >= 0; --level) {
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

}  // namespace foretoken::draft_math
