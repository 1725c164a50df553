#include "sched/prompt_share.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

// Of more pending units a step has two.
constexpr int kFewUnits = 3;
// Behind as many tokens attention takes about as long as all else that a row needs.
constexpr int kFarPrefix = 32768;
constexpr int kTileRows = 128;

}  // namespace

int prompt_share(const PromptDemand& demand, int unit, int max_rows) {
  FT_CHECK(unit > 0 && max_rows > 0);
  const int near = unit / (1 + demand.prefix_len / kFarPrefix) / kTileRows * kTileRows;
  unit = std::max(near, std::min(unit, kTileRows));
  int64_t units = demand.pending_rows > int64_t{kFewUnits} * unit ? 2 : 1;
  // At least half a unit is left for prompts.
  while (2 * (units * unit - demand.decoding_rows) < unit) ++units;
  const int64_t rows = std::min<int64_t>(units * unit, max_rows);
  return static_cast<int>(std::max<int64_t>(rows - demand.decoding_rows, 1));
}

}  // namespace foretoken
