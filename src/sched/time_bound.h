#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "sched/step_plan.h"
#include "spec/cost_table.h"

namespace foretoken {

// How many prompt rows a step may have beside sequences that decode, so that it ends within a bound
// on the time between two tokens: as many as the step-time table allows, corrected by what such
// steps really take, by the length of the prompts' prefixes, behind which rows grow dearer. It
// learns fast that steps are slow, from two that agree, and slowly that they are fast. Engine
// thread only.
//
// Example: the bound is 50 ms. By the table 8 sequences take 20 ms and a row more 0.1 ms, so that
// 300 rows fit. Two such steps take 75 ms: a factor of 1.5, by which 50 / 1.5 = 33.3 ms of the
// table are left, and 133 rows fit.
class TimeBound {
 public:
  // Prompts always get so many rows, or they would wait for ever where decoding alone takes as long
  // as the bound. Fewer, and a prompt of 8,000 tokens takes thousands of steps.
  static constexpr int kLeastRows = 16;

  // `max_rows`: of a step. `times` outlives it.
  TimeBound(int64_t bound_ns, int max_rows, const CostTable& times);

  // Prompt rows of a step that decodes `load`, whose own prompt rows do not count: at least
  // kLeastRows or 1, at most what those that decode leave of the step.
  int prompt_rows(StepLoad load) const;

  // A step with prompt rows took so long; one without them tells nothing.
  void observe(const StepLoad& load, int64_t ns);

  // `times` has other contents now.
  void restart() { cells_ = {}; }

 private:
  // In halves of powers of two, up to a million tokens.
  static constexpr int kNumPrefixes = 40;

  // Steps with prefixes of about one length.
  struct Cell {
    bool is_known = false;
    double factor = 1;  // what they take of the table's time
    double last = 0;    // of the last one
  };

  static size_t cell_of(int prefix_len);
  int64_t table_ns(const StepLoad& load) const;
  // Of the next shorter prefixes where nothing is known of these; 1: of none.
  double factor_of(size_t cell) const;

  const int64_t bound_ns_;
  const int max_rows_;
  const CostTable& times_;
  std::array<Cell, kNumPrefixes> cells_{};
};

}  // namespace foretoken
