#include "model/weights/row_runs.h"

#include <algorithm>

namespace foretoken {

RowRuns::RowRuns(std::span<const RowRun> runs) : runs_(runs), begins_{0} {
  for (const RowRun& run : runs) begins_.push_back(begins_.back() + run.num_rows);
}

std::vector<RowRun> RowRuns::between(int64_t first, int64_t end) const {
  std::vector<RowRun> found;
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), first);
  for (auto at = static_cast<size_t>(behind - begins_.begin()) - 1; at < runs_.size(); ++at) {
    const int64_t begin_here = std::max(first, begins_[at]);
    const int64_t end_here = std::min(end, begins_[at + 1]);
    if (begins_[at] >= end) break;
    if (begin_here >= end_here) continue;
    RowRun& part = found.emplace_back(runs_[at]);
    part.first_row += begin_here - begins_[at];
    part.num_rows = end_here - begin_here;
  }
  return found;
}

}  // namespace foretoken
