#include "spec/batch_rates.h"

#include <algorithm>

namespace foretoken {
namespace {

struct ShareWindows {
  // Steps of rest in which the share of drafting sequences comes back. Fewer, and a look-up that
  // hardly ever finds anything ends its rest again and again.
  static constexpr int64_t kRecovery = 2048;
  // Spans that this share looks back on. Fewer, and one idle span of a small batch halves it; more,
  // and a drafter whose drafts the device thinks too dear goes on for long.
  static constexpr int64_t kSpans = 12;
  // The same of look-ups for few sequences. Fewer, and one rests between two parts of a text that
  // it knows.
  static constexpr int64_t kFindsSpans = 32;
  // More are judged by a step or two: those without finds pay for the room that all are given.
  static constexpr int64_t kFew = 8;
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

BatchRates::BatchRates() { state_.rates.fill(spec::kFirstRate); }

int64_t BatchRates::share_window(int64_t num_spans, bool looks_up) {
  const bool finds_for_few = looks_up && num_spans <= ShareWindows::kFew;
  return std::max(num_spans, finds_for_few ? ShareWindows::kFindsSpans : ShareWindows::kSpans);
}

void BatchRates::take_in(const BatchResults& results, bool rests, int max_draft_tokens,
                         bool looks_up) {
  using spec::moved_rate;
  using Constants = spec::RateConstants;
  if (rests && results.num_found > 0) {
    *this = BatchRates();
    state_.share = results.num_found * kOne / std::max(results.num_spans, results.num_found);
  }
  const int32_t window = rests ? Constants::kRestWindow : Constants::kPriorWindow;
  const int64_t recovery = rests ? Constants::kUnseenProbes : Constants::kUnseenSteps;
  const int64_t num_drafting = results.reached[0];
  const int64_t num_spans = num_drafting + results.num_idle;
  state_.share = rests ? moved_rate<int64_t>(state_.share, kOne, 1, ShareWindows::kRecovery)
                       : moved_rate<int64_t>(state_.share, num_drafting * kOne, num_spans,
                                             share_window(num_spans, looks_up));
  for (size_t i = 0; i < static_cast<size_t>(max_draft_tokens); ++i) {
    const int32_t reached = results.reached[i];
    int64_t& rate = state_.rates[i];
    int32_t& num_rated = state_.num_rated[i];
    const int64_t before = i > 0 ? state_.rates[i - 1] : 0;
    if (reached > 0) {
      // No more than the window has, so that one which grows opens again.
      num_rated = std::min(spec::capped_sum(num_rated, reached), window - Constants::kFirstWeight);
      const int32_t opened = spec::open_window(num_rated, window);
      rate = spec::seen_rate<int64_t>(rate, results.accepted[i], reached, opened);
    } else if (num_drafting > 0) {
      rate =
          spec::unseen_rate<int64_t>(rate, before - before / Constants::kUnseenDecline, recovery);
    }
  }
}

int64_t BatchRates::expected_drafts(int limit) const {
  return spec::expected_drafts(state_.rates.data(), limit);
}

}  // namespace foretoken
