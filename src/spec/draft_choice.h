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

// Drafts that are expected to be accepted, in 1/RateConstants::kOne.
FT_HD inline int64_t expected_drafts(const Contender& drafter) {
  const DraftRates& known = drafter.rates.num_rated > 0 ? drafter.rates : drafter.prior;
  int64_t sum = 0;
  int32_t survival = RateConstants::kOne;
  for (int32_t i = 0; i < drafter.num_draft_tokens && i < kMaxDraftTokens; ++i) {
    const uint16_t rate = known.num_rated > 0 ? known.rates[i] : uint16_t{kFirstRate};
    survival = next_survival(survival, rate);
    sum += survival;
  }
  return sum;
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
  return expected_drafts(lookup) >= expected_drafts(other);
}

}  // namespace foretoken::spec
