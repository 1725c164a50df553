#include "sched/time_bound.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace foretoken {
namespace {

// Fast steps move a factor that is more than twice theirs by a quarter, as one that begins with a
// guess, and others by a sixteenth. More, and every fast step is followed by a slow one.
constexpr double kFarOff = 2;
constexpr double kFallFar = 0.25;
constexpr double kFall = 0.0625;

}  // namespace

TimeBound::TimeBound(int64_t bound_ns, int max_rows, const CostTable& times)
    : bound_ns_(bound_ns), max_rows_(max_rows), times_(times) {
  FT_CHECK(bound_ns > 0 && max_rows > 0);
}

int64_t TimeBound::table_ns(const StepLoad& load) const {
  const int rows = load.num_seqs + load.num_draft_tokens;
  const int64_t decoding =
      times_.step_ns(load.num_seqs, load.num_draft_tokens, load.num_draft_tokens) +
      times_.context_ns(load.num_seqs, load.num_draft_tokens / std::max(load.num_seqs, 1),
                        load.num_tokens);
  const int64_t prompts = times_.target.at(rows + load.num_prompt_rows) - times_.target.at(rows);
  return decoding + prompts;
}

size_t TimeBound::cell_of(int prefix_len) {
  if (prefix_len < 2) return 0;
  const auto length = static_cast<uint32_t>(prefix_len);
  const int octave = std::bit_width(length) - 1;
  const auto cell = static_cast<size_t>(2 * octave) + (length >> (octave - 1) & 1);
  return std::min<size_t>(cell, kNumPrefixes - 1);
}

double TimeBound::factor_of(size_t cell) const {
  while (cell > 0 && !cells_[cell].is_known) --cell;
  return cells_[cell].factor;
}

int TimeBound::prompt_rows(StepLoad load) const {
  const int room = std::max(max_rows_ - load.num_seqs - load.num_draft_tokens, 1);
  const double table_bound = static_cast<double>(bound_ns_) / factor_of(cell_of(load.prefix_len));
  int fits = std::min(kLeastRows, room);
  for (int above = room + 1; above - fits > 1;) {
    const int middle = fits + (above - fits) / 2;
    load.num_prompt_rows = middle;
    (static_cast<double>(table_ns(load)) <= table_bound ? fits : above) = middle;
  }
  return fits;
}

void TimeBound::observe(const StepLoad& load, int64_t ns) {
  const int64_t expected = table_ns(load);
  if (load.num_prompt_rows == 0 || expected <= 0) return;
  const double factor = static_cast<double>(ns) / static_cast<double>(expected);
  const size_t index = cell_of(load.prefix_len);
  Cell& cell = cells_[index];
  cell.factor = factor_of(index);
  cell.is_known = true;
  const double both = std::min(factor, cell.last);
  cell.last = factor;
  if (both > cell.factor) {
    cell.factor = both;
  } else if (factor < cell.factor) {
    cell.factor -= (cell.factor - factor) * (factor * kFarOff < cell.factor ? kFallFar : kFall);
  }
}

}  // namespace foretoken
