#pragma once
#include <foretoken/limits.h>

#include <cstdint>

#include "base/host_device.h"

namespace foretoken {

inline constexpr int kMaxDraftTokens = kMaxSpeculativeTokens;

// How often drafts were accepted of late: of a sequence, or of all sequences of a drafter.
struct DraftRates {
  int32_t since_draft;  // tokens committed since drafts were last verified
  int32_t num_rated;    // verifications that shaped `rates`; 0: they are not set yet
  uint16_t
      rates[kMaxDraftTokens];  // chance, in 1/65535, that draft i is accepted when those before are
};

}  // namespace foretoken

// The estimator of acceptance, by position of the draft, in integers: a running mean of outcomes
// (seen_rate) over a window that opens with what is known (open_window), which rises towards what
// the position before it promises where drafts were reached and not offered (unseen_rate). What
// rates promise together is expected_drafts. Two memories use it, as two things are decided:
// - DraftRates, on the device, of each sequence and of each drafter, know the step that just ended.
//   choose_lengths deals drafts out to sequences by them, within what the host granted.
// - BatchRates (spec/batch_rates.h), on the host, of each drafter, take in results that are some
//   steps old, so that engines with one and two steps in flight decide alike. LengthController
//   grants by them, and rests drafters that do not pay.
// Scale, first rate and windows of both stand here: the same outcomes give a drafter the same rates
// on both, once its window is open (the host counts those of a step before it moves by them). While
// drafts rest, the host looks back on fewer of them, as there are few; where none are offered, it
// hopes for less behind those that are, as it pays for whole steps.
namespace foretoken::spec {

// What a rate starts at where nothing is known: 0.7. Higher, and a drafter that does not fit costs
// time until that is learnt; lower, and a good one is never tried.
inline constexpr int32_t kFirstRate = 45875;

struct RateConstants {
  // The scale of all rates, shares and survivals; another one does not fit uint16_t.
  static constexpr int32_t kOne = 65535;
  // Outcomes that a first rate counts as. Fewer, and one lucky draft is believed; more, and a young
  // sequence drafts by its drafter's mean for too long.
  static constexpr int32_t kFirstWeight = 4;
  // Verifications that a sequence's rates look back on. Shorter, and lengths jitter; longer, and a
  // sequence that comes to a part of another kind drafts by the old one.
  static constexpr int32_t kSlotWindow = 32;
  // The same of a drafter, on the device and on the host. Shorter, and new sequences start from
  // what the last one did, and limits change with every unlucky step; longer, and a drafter that
  // stopped fitting goes on for long.
  static constexpr int32_t kPriorWindow = 64;
  // The same on the host while the drafter rests, from probes alone, of which there are few. More,
  // and a drafter that fits again rests on.
  static constexpr int32_t kRestWindow = 12;
  // How slowly rates rise whose drafts were reached and not offered. Shorter, and long drafts are
  // tried again right after they failed; longer, and a length once cut never grows again.
  static constexpr int32_t kUnseenWindow = 64;
  // The same on the host, in steps, and in probes of a rest. Fewer, and a length that failed is
  // tried again at once; more, and a limit once cut never grows.
  static constexpr int32_t kUnseenSteps = 256;
  static constexpr int32_t kUnseenProbes = 12;
  // There such a rate comes back to 1/16 less than the one before it. Nearer, and drafts behind the
  // known ones are thought as good as those.
  static constexpr int32_t kUnseenDecline = 16;
  // Tokens without a draft before one is tried whatever it costs. Fewer, and probes cost time where
  // drafting does not pay; more, and a text that became predictable is noticed late.
  static constexpr int32_t kProbeTokens = 64;
  // Most verifications that count beside a probe's. More, and a probe that fits changes nothing.
  static constexpr int32_t kProbeRated = 4;
  // The same as kProbeTokens of all sequences together, for one of a list that others leave no
  // turn. Fewer, and large batches try in vain too often; more, and short outputs, none of which
  // lives as long as kProbeTokens, go without a drafter that fits by now.
  static constexpr int32_t kRetryTokens = 4096;
  // num_rated and since_draft stay there. Higher, and sums of them leave 32 bits.
  static constexpr int32_t kMaxCount = 1 << 20;
};

// A running mean after `num` more outcomes that add up to `sum`, the mean looking back on `window`
// (at least num) of them. Rounded towards `rate`.
template <class Int>
FT_HD constexpr Int moved_rate(Int rate, Int sum, Int num, Int window) {
  return rate + (sum - rate * num) / window;
}

// The rate of drafts of which `accepted` of `tries` (at least 1) were accepted now. More than the
// window move it all the way to their mean.
template <class Int>
FT_HD constexpr Int seen_rate(Int rate, Int accepted, Int tries, Int window) {
  const Int moves = tries < window ? tries : window;
  const auto sum = static_cast<Int>(int64_t{RateConstants::kOne} * accepted * moves / tries);
  return moved_rate<Int>(rate, sum, moves, window);
}

// The rate of drafts that none were offered of: never lowered.
template <class Int>
FT_HD constexpr Int unseen_rate(Int rate, Int hoped, Int window) {
  return rate < hoped ? moved_rate<Int>(rate, hoped, 1, window) : rate;
}

// Chance that a draft is accepted whose predecessor survives with `survival` (kOne before the
// first).
FT_HD constexpr int32_t next_survival(int32_t survival, uint16_t rate) {
  return static_cast<int32_t>(static_cast<uint32_t>(survival) * rate / RateConstants::kOne);
}

// Drafts that are accepted of `count` (at most kMaxDraftTokens) where any are verified: the sum of
// their survivals, in 1/kOne.
template <class Rates>
FT_HD constexpr int64_t expected_drafts(const Rates& rates, int32_t count) {
  int64_t sum = 0;
  int32_t survival = RateConstants::kOne;
  for (int32_t i = 0; i < count; ++i) {
    survival = next_survival(survival, static_cast<uint16_t>(rates[i]));
    sum += survival;
  }
  return sum;
}

// What a verification tells: drafts before `accepted` were accepted; draft `accepted` was not when
// `rejected`. A commit that was cut at a stop id or at max_len tells nothing about the drafts
// behind the cut.
struct Outcome {
  int32_t drafted;
  int32_t accepted;
  bool rejected;
};

FT_HD inline Outcome outcome_of(int32_t num_drafted, int32_t num_accepted, int32_t num_committed) {
  return {num_drafted, num_accepted, num_accepted < num_drafted && num_committed > num_accepted};
}

FT_HD inline int32_t capped_sum(int32_t count, int32_t more) {
  return more < RateConstants::kMaxCount - count ? count + more : RateConstants::kMaxCount;
}

// DraftRates::since_draft after a commit.
FT_HD inline int32_t since_draft_after(int32_t before, int32_t num_drafted, int32_t num_committed) {
  return num_drafted > 0 ? 0 : capped_sum(before, num_committed);
}

// The window of rates that rest on so many verifications; it opens over the first ones.
FT_HD inline int32_t open_window(int32_t num_rated, int32_t window) {
  const int32_t opened = num_rated + RateConstants::kFirstWeight;
  return opened < window ? opened : window;
}

// Draft i was verified.
FT_HD inline void rate_draft(DraftRates& state, int32_t i, int32_t accepted, int32_t tries,
                             int32_t window) {
  state.rates[i] =
      static_cast<uint16_t>(seen_rate<int32_t>(state.rates[i], accepted, tries, window));
}

// num_rates below: the most drafts of the drafter. Rates behind them are neither read nor written,
// so that few drafts cost little.

// Rates of drafts from `first` on, which were reached and not offered, rise towards the one before.
FT_HD inline void raise_unseen(DraftRates& state, int32_t first, int32_t num_rates) {
  const int32_t window = open_window(state.num_rated, RateConstants::kUnseenWindow);
  for (int32_t i = first > 0 ? first : 1; i < num_rates; ++i) {
    state.rates[i] =
        static_cast<uint16_t>(unseen_rate<int32_t>(state.rates[i], state.rates[i - 1], window));
  }
}

// Rates that are not set yet, where nothing is known.
FT_HD inline void start_first_rates(DraftRates& state, int32_t num_rates = kMaxDraftTokens) {
  for (int32_t i = 0; i < num_rates; ++i) state.rates[i] = static_cast<uint16_t>(kFirstRate);
}

// The same: those of the prior, where it has some.
FT_HD inline void start_rates(DraftRates& state, const DraftRates& prior,
                              int32_t num_rates = kMaxDraftTokens) {
  if (prior.num_rated == 0) return start_first_rates(state, num_rates);
  for (int32_t i = 0; i < num_rates; ++i) state.rates[i] = prior.rates[i];
}

// A sequence takes in the outcome of o.drafted > 0 drafts. Example: of a young sequence with the
// rates 0.7, 0.7, 0.7 three drafts are verified and one is accepted. The window is 4
// (kFirstWeight), so the first rate becomes 0.7 + 0.3 / 4 = 0.775 and the second 0.7 - 0.7 / 4 =
// 0.525; the third was not reached and stays. The next outcome moves a rate by a fifth, later ones
// by a 32nd.
FT_HD inline void rate_sequence(DraftRates& state, const Outcome& o,
                                int32_t num_rates = kMaxDraftTokens) {
  const int32_t window = open_window(state.num_rated, RateConstants::kSlotWindow);
  for (int32_t i = 0; i < o.accepted; ++i) rate_draft(state, i, 1, 1, window);
  if (o.rejected) rate_draft(state, o.accepted, 0, 1, window);
  if (o.accepted == o.drafted) raise_unseen(state, o.drafted, num_rates);
  state.num_rated = capped_sum(state.num_rated, 1);
}

// The verifications of one step, over all sequences of a drafter. Sums and a minimum: their order
// does not matter.
struct StepVerifications {
  int32_t accepted[kMaxDraftTokens];  // how often draft i was accepted
  int32_t rejected[kMaxDraftTokens];
  int32_t count;
  int32_t committed;  // tokens, of all its sequences
  int32_t
      first_unseen;  // least number of drafts that were all accepted; kMaxDraftTokens: none were
};

// The prior takes in those of a step: each rate moves by one share a verification, towards their
// mean.
FT_HD inline void rate_prior(DraftRates& prior, const StepVerifications& step,
                             int32_t num_rates = kMaxDraftTokens) {
  prior.since_draft = since_draft_after(prior.since_draft, step.count, step.committed);
  if (step.count == 0) return;
  if (prior.num_rated == 0) start_first_rates(prior, num_rates);
  const int32_t window = open_window(prior.num_rated, RateConstants::kPriorWindow);
  for (int32_t i = 0; i < num_rates; ++i) {
    const int32_t tries = step.accepted[i] + step.rejected[i];
    if (tries > 0) rate_draft(prior, i, step.accepted[i], tries, window);
  }
  raise_unseen(prior, step.first_unseen, num_rates);
  prior.num_rated = capped_sum(prior.num_rated, step.count);
}

// Whether what the rates say is so old that a draft is tried whatever it costs.
FT_HD inline bool wants_probe(const DraftRates& rates) {
  return rates.since_draft >= RateConstants::kProbeTokens;
}

// What was seen before a rest counts little beside what a probe will tell.
FT_HD inline void expect_probe(DraftRates& rates) {
  if (wants_probe(rates) && rates.num_rated > RateConstants::kProbeRated) {
    rates.num_rated = RateConstants::kProbeRated;
  }
}

}  // namespace foretoken::spec
