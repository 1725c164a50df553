#pragma once
#include <foretoken/request.h>

#include <vector>

namespace foretoken {

// Everything that came of one request so far, choice by choice. One thread at a time.
class OutputSum {
 public:
  explicit OutputSum(int num_choices = 1) : choices_(static_cast<size_t>(num_choices)) {}

  // Appends what is new about one choice.
  void add(const RequestOutput& output);
  // Ends every open choice with an error.
  void fail(const Status& status);

  // One for each choice, with all its text, tokens and log-probabilities.
  const std::vector<RequestOutput>& choices() const { return choices_; }
  bool finished() const { return finished_; }
  // The first error of a choice, or ok.
  Status status() const;
  // Prompt counts of one choice, the other counts of all together.
  RequestStats stats() const;

 private:
  std::vector<RequestOutput> choices_;
  bool finished_ = false;
};

}  // namespace foretoken
