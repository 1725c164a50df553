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
  predicted = predicted || other.predicted;
  if (other.reasoning) reasoning = reasoning.value_or(0) + *other.reasoning;
  return *this;
}

UsageCounts usage_counts(const std::vector<RequestStats>& choices, bool predicted) {
  UsageCounts sum;
  sum.predicted = predicted;
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

UsageSum::UsageSum(const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    Counted& counted = requests_.emplace_back();
    counted.predicted = request.has_prediction();
    counted.choices.resize(static_cast<size_t>(std::max(request.sampling.n, 1)));
  }
}

void UsageSum::note(size_t request, int choice, const RequestStats& stats) {
  requests_[request].choices.at(static_cast<size_t>(choice)) = stats;
}

UsageCounts UsageSum::counts() const {
  UsageCounts sum;
  for (const Counted& request : requests_) {
    sum += usage_counts(request.choices, request.predicted);
  }
  return sum;
}

nlohmann::ordered_json openai_usage(const UsageCounts& counts) {
  nlohmann::ordered_json usage = {{"prompt_tokens", counts.prompt},
                                  {"total_tokens", counts.prompt + counts.output},
                                  {"completion_tokens", counts.output},
                                  {"prompt_tokens_details", {{"cached_tokens", counts.cached}}}};
  nlohmann::ordered_json details;
  if (counts.predicted || counts.accepted + counts.rejected > 0) {
    details = {{"accepted_prediction_tokens", counts.accepted},
               {"rejected_prediction_tokens", counts.rejected}};
  }
  if (counts.reasoning) details["reasoning_tokens"] = *counts.reasoning;
  if (!details.is_null()) usage["completion_tokens_details"] = std::move(details);
  return usage;
}

}  // namespace foretoken
