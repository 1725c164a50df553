#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/step_types.h"
#include "sched/step_plan.h"

namespace foretoken {

// One position: its token and the likeliest ones, best first.
struct LogprobRow {
  RowLogprobs token{};
  std::span<const TopLogprob> top;
};

// Carries the log-probabilities of one sequence from the engine thread to the output thread. All
// memory is taken at construction. The prompt's rows are kept whole, since they leave together;
// those of the output pass through a ring.
class LogprobRecord {
 public:
  // `num_top`: alternatives of a row at most. `max_output`: output tokens at most, 0: no rows of
  // them are wanted.
  LogprobRecord(int num_top, int num_prompt_rows, int max_output);

  // Engine thread: the row of the prompt's token at position `index` + 1. Rows that are there
  // already, as after a preemption, are left as they are.
  void add_prompt(int index, int32_t id, const LogprobRow& row);
  // Engine thread: the row of the next output token. Waits while the output thread is behind by
  // the whole ring. The event that announces the row must follow.
  void push(int32_t id, const LogprobRow& row);
  bool wants_output() const { return !ring_.tokens.empty(); }

  // Output thread: the oldest announced row; valid until the next drop.
  LogprobRow front() const;
  void drop(int count);

  // Output thread, once an output token or the end was announced.
  bool prompt_complete() const { return num_prompt_ == prompt_.size(); }
  int num_prompt() const { return prompt_.size(); }
  LogprobRow prompt(int index) const { return prompt_.row(index, num_top_); }

 private:
  struct Rows {
    std::vector<RowLogprobs> tokens;
    std::vector<TopLogprob> top;  // [rows, num_top]

    int size() const { return static_cast<int>(tokens.size()); }
    void set(int index, int num_top, int32_t id, const LogprobRow& row);
    LogprobRow row(int index, int num_top) const;
  };

  const int num_top_;
  Rows prompt_;
  int num_prompt_ = 0;
  Rows ring_;
  uint64_t num_pushed_ = 0;               // engine thread
  std::atomic<uint64_t> num_dropped_{0};  // output thread
};

// Engine thread: hands the rows of one span's result to its record, before the scheduler learns of
// the result.
void record_logprobs(const Span& span, const SpanResult& result, const ResultView& view,
                     const ResultLimits& limits, LogprobRecord& record);

}  // namespace foretoken
