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
  int64_t cached = 0;  // of prompt
  // Of drafts that came from the request's prediction, or of a request without one all drafts:
  // tokens in the output, and those that are not.
  int64_t accepted = 0;
  int64_t rejected = 0;
  bool predicted = false;  // a request has a prediction, which may never have been drafted from
  std::optional<int64_t> reasoning;  // of output, where it is split

  UsageCounts& operator+=(const UsageCounts& other);
};

// The counts of all choices of one or more requests, from the last outputs of each. One thread at a
// time.
class UsageSum {
 public:
  // The requests that are counted.
  explicit UsageSum(const std::vector<Request>& requests);
  void note(size_t request, int choice, const RequestStats& stats);
  UsageCounts counts() const;

 private:
  struct Counted {
    bool predicted = false;
    std::vector<RequestStats> choices;
  };
  std::vector<Counted> requests_;
};

// Of one request: its prompt tokens once, the other counts of all its choices.
UsageCounts usage_counts(const std::vector<RequestStats>& choices, bool predicted);

// OpenAI's object: {"prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details":
// {"cached_tokens"}}; "completion_tokens_details" has, with a prediction or drafted tokens,
// "accepted_prediction_tokens" and "rejected_prediction_tokens", of drafts from the request's
// prediction, of a request without one of all drafts, and "reasoning_tokens" where reasoning is
// split off.
nlohmann::ordered_json openai_usage(const UsageCounts& counts);

}  // namespace foretoken
