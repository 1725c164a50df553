#include "serve/metrics/speculation_metrics.h"

namespace foretoken {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

nlohmann::ordered_json speculation_metrics(const RequestStats& stats, int num_spec_tokens) {
  // Another drafter of the request's list may make more.
  for (int i = num_spec_tokens; i < kMaxSpeculativeTokens; ++i) {
    if (stats.num_draft_tokens_per_pos[static_cast<size_t>(i)] > 0) num_spec_tokens = i + 1;
  }
  nlohmann::ordered_json histogram = nlohmann::ordered_json::array();
  int64_t at_least = stats.num_drafts;
  for (int i = 0; i <= num_spec_tokens; ++i) {
    const int64_t more = i < num_spec_tokens && i < kMaxSpeculativeTokens
                             ? stats.num_accepted_tokens_per_pos[static_cast<size_t>(i)]
                             : 0;
    histogram.push_back(at_least - more);
    at_least = more;
  }
  return {{"mean_acceptance_length", 1 + ratio(stats.num_accepted_tokens, stats.num_drafts)},
          {"draft_acceptance_rate", ratio(stats.num_accepted_tokens, stats.num_draft_tokens)},
          {"acceptance_histogram", std::move(histogram)},
          {"num_spec_steps", stats.num_drafts},
          {"num_accepted_draft_tokens", stats.num_accepted_tokens},
          {"num_draft_tokens", stats.num_draft_tokens},
          {"num_spec_tokens", num_spec_tokens}};
}

}  // namespace foretoken
