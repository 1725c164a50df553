#include "serve/answer/usage.h"

#include <algorithm>
#include <utility>

namespace foretoken {

UsageCounts& UsageCounts::operator+=(const UsageCounts& other) {
  prompt += other.prompt;
  output += other.output;
  cached += other.cached;
  accepted += other.accepted;
  rejected += other.rejected;
  if (other.reasoning) reasoning = reasoning.value_or(0) + *other.reasoning;
  return *this;
}

// Of the request's own prediction where that was drafted, otherwise of what drafters predicted.
UsageCounts usage_counts(const std::vector<RequestStats>& choices) {
  UsageCounts sum;
  const bool predicted = std::any_of(choices.begin(), choices.end(), [](const RequestStats& stats) {
    return stats.num_prediction_draft_tokens > 0;
  });
  for (const RequestStats& stats : choices) {
    sum.prompt = std::max(sum.prompt, stats.num_prompt_tokens);
    sum.output += stats.num_output_tokens;
    const int64_t drafted = predicted ? stats.num_prediction_draft_tokens : stats.num_draft_tokens;
    const int64_t accepted =
        predicted ? stats.num_accepted_prediction_tokens : stats.num_accepted_tokens;
    sum.accepted += accepted;
    sum.rejected += drafted - accepted;
  }
  if (!choices.empty()) sum.cached = choices.front().num_cached_tokens;
  return sum;
}

UsageSum::UsageSum(const std::vector<int>& num_choices) {
  for (const int n : num_choices) stats_.emplace_back(static_cast<size_t>(std::max(n, 1)));
}

void UsageSum::note(size_t request, int choice, const RequestStats& stats) {
  stats_[request].at(static_cast<size_t>(choice)) = stats;
}

UsageCounts UsageSum::counts() const {
  UsageCounts sum;
  for (const std::vector<RequestStats>& choices : stats_) sum += usage_counts(choices);
  return sum;
}

nlohmann::ordered_json openai_usage(const UsageCounts& counts) {
  nlohmann::ordered_json usage = {{"prompt_tokens", counts.prompt},
                                  {"total_tokens", counts.prompt + counts.output},
                                  {"completion_tokens", counts.output},
                                  {"prompt_tokens_details", {{"cached_tokens", counts.cached}}}};
  nlohmann::ordered_json details;
  if (counts.accepted + counts.rejected > 0) {
    details = {{"accepted_prediction_tokens", counts.accepted},
               {"rejected_prediction_tokens", counts.rejected}};
  }
  if (counts.reasoning) details["reasoning_tokens"] = *counts.reasoning;
  if (!details.is_null()) usage["completion_tokens_details"] = std::move(details);
  return usage;
}

}  // namespace foretoken
