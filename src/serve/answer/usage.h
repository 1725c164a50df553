#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace foretoken {

// What an answer counts.
struct UsageCounts {
  int64_t prompt = 0;
  int64_t output = 0;
  int64_t cached = 0;    // of prompt
  int64_t accepted = 0;  // tokens of the prediction, or else drafted ones, in the output
  int64_t rejected = 0;  // such tokens that are not
  std::optional<int64_t> reasoning;  // of output, where it is split

  UsageCounts& operator+=(const UsageCounts& other);
};

// The counts of all choices of one or more requests, from the last outputs of each. One thread at a
// time.
class UsageSum {
 public:
  // `num_choices`: of each request.
  explicit UsageSum(const std::vector<int>& num_choices);
  void note(size_t request, int choice, const RequestStats& stats);
  UsageCounts counts() const;

 private:
  std::vector<std::vector<RequestStats>> stats_;
};

// Prompt tokens of each request once, the other counts of all its choices.
UsageCounts usage_counts(const std::vector<RequestStats>& choices);

// OpenAI's object: {"prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details":
// {"cached_tokens"}}; "completion_tokens_details" has, with drafted tokens,
// "accepted_prediction_tokens" and "rejected_prediction_tokens", of the request's prediction where
// that was drafted, else of all drafts, and "reasoning_tokens" where reasoning is split off.
nlohmann::ordered_json openai_usage(const UsageCounts& counts);

}  // namespace foretoken
