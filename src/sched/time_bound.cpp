#include "sched/time_bound.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

// A fast step moves the factor by a quarter. More, and every fast step is followed by a slow one.
constexpr double kFall = 0.25;

}  // namespace

TimeBound::TimeBound(int64_t bound_ns, int max_rows, const CostTable& times)
    : bound_ns_(bound_ns), max_rows_(max_rows), times_(times) {
  FT_CHECK(bound_ns > 0 && max_rows > 0);
}

int64_t TimeBound::table_ns(const StepLoad& load) const {
  const int rows = load.num_seqs + load.num_drafts;
  const int64_t decoding =
      times_.step_ns(load.num_seqs, load.num_drafts, load.num_drafts) +
      times_.context_ns(load.num_seqs, load.num_drafts / std::max(load.num_seqs, 1),
                        load.num_tokens);
  const int64_t prompts = times_.target.at(rows + load.num_prompt_rows) - times_.target.at(rows);
  return decoding + prompts;
}

int TimeBound::prompt_rows(StepLoad load) const {
  const int room = std::max(max_rows_ - load.num_seqs - load.num_drafts, 1);
  const auto bound_ns = static_cast<double>(bound_ns_);
  int fits = std::min(kLeastRows, room);
  for (int above = room + 1; above - fits > 1;) {
    const int middle = fits + (above - fits) / 2;
    load.num_prompt_rows = middle;
    (static_cast<double>(table_ns(load)) * factor_ <= bound_ns ? fits : above) = middle;
  }
  return fits;
}

void TimeBound::observe(const StepLoad& load, int64_t ns) {
  const int64_t expected = table_ns(load);
  if (load.num_prompt_rows == 0 || expected <= 0) return;
  const double factor = static_cast<double>(ns) / static_cast<double>(expected);
  const double both = std::min(factor, last_);
  last_ = factor;
  if (both > factor_) {
    factor_ = both;
  } else if (factor < factor_) {
    factor_ -= (factor_ - factor) * kFall;
  }
}

void TimeBound::restart() {
  factor_ = 1;
  last_ = 0;
}

}  // namespace foretoken
