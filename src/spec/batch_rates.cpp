#include "spec/batch_rates.h"

#include <algorithm>

namespace foretoken {
namespace {

struct Windows {
  // Observations that a rate looks back on. Fewer, and limits change with every unlucky step; more,
  // and a drafter that stopped fitting goes on for long.
  static constexpr int64_t kMemory = 64;
  // The same from probes alone, of which there are few. More, and a drafter that fits again rests
  // on.
  static constexpr int64_t kRestingMemory = 12;
  // A rate that is not observed comes back to 1/16 less than the one before it. Nearer, and drafts
  // behind the known ones are thought as good as those.
  static constexpr int64_t kDecline = 16;
  // In so many steps without observations, or probes. Fewer, and a length that failed is tried
  // again at once; more, and a limit once cut never grows.
  static constexpr int64_t kRecovery = 256;
  static constexpr int64_t kRestingRecovery = 12;
  // Steps of rest in which the share of drafting sequences comes back. Fewer, and a look-up that
  // hardly ever finds anything ends its rest again and again.
  static constexpr int64_t kShareRecovery = 2048;
  // Spans that this share looks back on. Fewer, and one idle span of a small batch halves it; more,
  // and a drafter whose drafts the device thinks too dear goes on for long.
  static constexpr int64_t kShareMemory = 12;
  // The same of look-ups. Fewer, and one rests between two parts of a text that it knows.
  static constexpr int64_t kFindsMemory = 32;
};

}  // namespace

void BatchResults::add(int max_verified, int num_drafted, int num_accepted) {
  ++num_spans;
  if (max_verified > 0 && num_drafted == 0) ++num_idle;
  for (int i = 0; i < std::min(num_accepted + 1, num_drafted); ++i) {
    ++reached[static_cast<size_t>(i)];
    if (i < num_accepted) ++accepted[static_cast<size_t>(i)];
  }
}

BatchRates::BatchRates() {
  state_.rates.fill(spec::kFirstRate);
  state_.weights.fill(spec::RateConstants::kFirstWeight);
}

void BatchRates::take_in(const BatchResults& results, bool rests, int max_draft_tokens,
                         bool looks_up) {
  using spec::moved_rate;
  if (rests && results.num_found > 0) {
    *this = BatchRates();
    state_.share = results.num_found * kOne / std::max(results.num_spans, results.num_found);
  }
  const int64_t memory = rests ? Windows::kRestingMemory : Windows::kMemory;
  const int64_t recovery = rests ? Windows::kRestingRecovery : Windows::kRecovery;
  const int64_t num_drafting = results.reached[0];
  const int64_t num_spans = num_drafting + results.num_idle;
  const int64_t spans_ago = looks_up ? Windows::kFindsMemory : Windows::kShareMemory;
  state_.share = rests ? moved_rate<int64_t>(state_.share, kOne, 1, Windows::kShareRecovery)
                       : moved_rate<int64_t>(state_.share, num_drafting * kOne, num_spans,
                                             std::max(num_spans, spans_ago));
  for (size_t i = 0; i < static_cast<size_t>(max_draft_tokens); ++i) {
    const int64_t reached = results.reached[i];
    int64_t& rate = state_.rates[i];
    const int64_t before = i > 0 ? state_.rates[i - 1] : 0;
    const int64_t hope = before - before / Windows::kDecline;
    if (reached > 0) {
      state_.weights[i] = std::max(reached, std::min(state_.weights[i] + reached, memory));
      rate = spec::seen_rate<int64_t>(rate, results.accepted[i], reached, state_.weights[i], kOne);
    } else if (num_drafting > 0) {
      rate = spec::unseen_rate<int64_t>(rate, hope, recovery);
    }
  }
}

int64_t BatchRates::expected_drafts(int limit) const {
  int64_t sum = 0;
  int64_t survival = kOne;
  for (int i = 0; i < limit; ++i) {
    survival = survival * state_.rates[static_cast<size_t>(i)] / kOne;
    sum += survival;
  }
  return sum;
}

}  // namespace foretoken
