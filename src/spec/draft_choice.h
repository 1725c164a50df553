#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "spec/acceptance_rates.h"
#include "spec/length_choice.h"

// Whose drafts are verified where a sequence has a look-up before another drafter, chosen on the
// device by what both are known to be worth (kernels/draft/choose_draft.h). Integers only: both
// devices choose the same.
namespace foretoken::spec {

// One of the two drafters.
struct Contender {
  const DraftRates& rates;   // of the sequence
  const DraftRates& prior;   // of all sequences of the drafter
  int32_t num_draft_tokens;  // that it has found, or may propose
};

// Rates of which nothing is known.
struct FirstRates {
  FT_HD constexpr int32_t operator[](int32_t) const { return kFirstRate; }
};

// Drafts that are expected to be accepted, in 1/RateConstants::kOne.
FT_HD inline int64_t expected_of(const Contender& drafter) {
  const DraftRates& known = drafter.rates.num_rated > 0 ? drafter.rates : drafter.prior;
  const int32_t num = drafter.num_draft_tokens;
  const int32_t count = num < kMaxDraftTokens ? num : kMaxDraftTokens;
  if (known.num_rated == 0) return expected_drafts(FirstRates(), count);
  return expected_drafts(known.rates, count);
}

// Whether one has to be tried: the sequence, or all of them together, had no drafts of it verified
// for long, or hardly any at all. Rates that nothing is known of would leave it no turn where those
// of the others are higher, and would stay as they are.
FT_HD inline bool wants_turn(const Contender& drafter) {
  const bool is_new = drafter.rates.num_rated < RateConstants::kProbeRated &&
                      drafter.prior.num_rated < RateConstants::kProbeRated;
  return is_new || wants_probe(drafter.rates) ||
         drafter.prior.since_draft >= RateConstants::kRetryTokens;
}

// Whether the drafts of the look-up, at least one, are verified. The one that has to be tried is,
// the look-up first; of equals the look-up's stand, as they exist already.
FT_HD inline bool lookup_stands(const Contender& lookup, const Contender& other) {
  if (other.num_draft_tokens <= 0 || wants_turn(lookup)) return true;
  if (wants_turn(other)) return false;
  return expected_of(lookup) >= expected_of(other);
}

}  // namespace foretoken::spec
