#pragma once
#include <array>
#include <cstdint>

#include "spec/acceptance_rates.h"

namespace foretoken {

// What the results of one step told about the drafts of a drafter, by position of the draft.
struct BatchResults {
  std::array<int, kMaxDraftTokens> reached{};  // verified, and all drafts before it accepted
  std::array<int, kMaxDraftTokens> accepted{};
  int num_idle = 0;   // spans with room for drafts that had none
  int num_spans = 0;  // that were added
  int num_found = 0;  // of those, where a look-up knew a long piece of text

  // One span, which had room for so many drafts.
  void add(int max_verified, int num_drafted, int num_accepted);
};

// Acceptance over all sequences of a drafter as the host learns it, from results that are some
// steps old: the estimator of spec/acceptance_rates.h, with a window for each position, since only
// positions that were granted are seen, and how many of the sequences that may draft really do.
// LengthController decides by it how many drafts are granted; which sequences get them is decided
// by the device's rates. Integers: the same results give the same rates.
class BatchRates {
 public:
  static constexpr int64_t kOne = spec::RateConstants::kOne;  // the scale of rates and shares

  // All that it knows.
  struct State {
    // Chance that a draft is accepted when those before it are, in 1/kOne, and the verifications
    // that it rests on, as far as its window looks back.
    std::array<int64_t, kMaxDraftTokens> rates{};
    std::array<int32_t, kMaxDraftTokens> num_rated{};
    int64_t share = kOne;
    friend bool operator==(const State&, const State&) = default;
  };

  BatchRates();
  explicit BatchRates(const State& state) : state_(state) {}

  const State& state() const { return state_; }

  // Takes in the results of one step. `rests`: the drafter was not in use, and what came is from
  // probes. A long piece of text that was found then makes it one of which nothing is known.
  // `looks_up`: whether there are drafts depends on what is found in the text.
  void take_in(const BatchResults& results, bool rests, int max_draft_tokens,
               bool looks_up = false);

  // Of `limit` drafts, those that are accepted where any are verified, in 1/kOne.
  int64_t expected_drafts(int limit) const;

  // Spans that the share of `num_spans` more of them looks back on.
  static int64_t share_window(int64_t num_spans, bool looks_up);

  // Of the sequences that might have drafts verified, those that do, in 1/kOne: the device gives
  // none to slots where they would not pay, and a look-up finds none for some.
  int64_t share() const { return state_.share; }

 private:
  State state_;
};

}  // namespace foretoken
