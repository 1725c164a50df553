#pragma once
#include <foretoken/request.h>

#include <chrono>
#include <optional>
#include <vector>

namespace foretoken {

// Tokens of one choice, one after the other, of one origin.
struct OriginPiece {
  bool drafted = false;  // proposed by a drafter and accepted; otherwise the target's own
  int num_tokens = 0;
  size_t num_bytes = 0;  // of text
};

// When tokens came; empty before.
struct OutputTimes {
  using Time = std::chrono::steady_clock::time_point;
  std::optional<Time> first;
  std::optional<Time> last;

  void note(const RequestOutput& output);
};

// What came of one choice, with the origin of its tokens in order.
struct ChoiceOutput {
  RequestOutput output;
  std::vector<OriginPiece> origins;
  OutputTimes times;

  // Appends what is new.
  void add(const RequestOutput& more);
};

// Everything that came of one request so far, choice by choice. One thread at a time.
class OutputSum {
 public:
  explicit OutputSum(int num_choices = 1)
      : choices_(static_cast<size_t>(num_choices)),
        origins_(choices_.size()),
        times_(choices_.size()) {}

  // Appends what is new about one choice.
  void add(const RequestOutput& output);
  // Ends every open choice with an error.
  void fail(const Status& status);

  // One for each choice, with all its text, tokens and log-probabilities.
  const std::vector<RequestOutput>& choices() const { return choices_; }
  // Of each choice's tokens.
  const std::vector<OriginPiece>& origins(size_t choice) const { return origins_[choice]; }
  const OutputTimes& times(size_t choice) const { return times_[choice]; }
  bool finished() const { return finished_; }
  // The first error of a choice, or ok.
  Status status() const;
  // Prompt counts of one choice, the other counts of all together.
  RequestStats stats() const;

 private:
  std::vector<RequestOutput> choices_;
  std::vector<std::vector<OriginPiece>> origins_;
  std::vector<OutputTimes> times_;
  bool finished_ = false;
};

}  // namespace foretoken
