#include "sched/prompt_share.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

// Of more pending units a step has two.
constexpr int kFewUnits = 3;
// A step has two units for every twenty that are queued, in proportion to the tokens that it brings
// a sequence.
constexpr int kPatience = 10;
constexpr int kMaxUnits = 6;
// Behind as many tokens attention takes about as long as all else that a row needs.
constexpr int kFarPrefix = 32768;
constexpr int kTileRows = 128;

// Half of the drafts are taken to be right, of many no more than of four: their rows are a bound.
int64_t units_for_backlog(const PromptDemand& demand, int unit) {
  if (demand.num_decoding == 0) return 1;
  const int64_t twice_tokens =
      demand.num_decoding + std::min(demand.decoding_rows, 5 * demand.num_decoding);
  const int64_t pairs =
      demand.queued_rows * twice_tokens / (int64_t{4} * kPatience * unit * demand.num_decoding);
  return std::min<int64_t>(2 * pairs, kMaxUnits);
}

}  // namespace

int prompt_share(const PromptDemand& demand, int unit, int max_rows) {
  FT_CHECK(unit > 0 && max_rows > 0);
  const int64_t for_backlog = units_for_backlog(demand, unit);
  const int near = unit / (1 + demand.prefix_len / kFarPrefix) / kTileRows * kTileRows;
  unit = std::max(near, std::min(unit, kTileRows));
  int64_t units = demand.pending_rows > int64_t{kFewUnits} * unit ? 2 : 1;
  units = std::max(units, for_backlog);
  // At least half a unit is left for prompts.
  while (2 * (units * unit - demand.decoding_rows) < unit) ++units;
  const int64_t rows = std::min<int64_t>(units * unit, max_rows);
  return static_cast<int>(std::max<int64_t>(rows - demand.decoding_rows, 1));
}

}  // namespace foretoken
