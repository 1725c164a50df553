#include "kernels/rows/match_magnitude.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void match_magnitude(Queue& queue, const MatchMagnitudeArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.like != nullptr);
  FT_CHECK(args.max_rows > 0 && args.size > 0 && args.least > 0);
  queue.launch(args);
}

template <>
struct Costs<MatchMagnitudeArgs> {
  static LiveRowsPlace place(const MatchMagnitudeArgs& a) { return {a.counts}; }
  static OpCost cost(const MatchMagnitudeArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = 3 * rows * a.size * kFloatBytes};
  }
  static std::string shape(const MatchMagnitudeArgs& a) { return std::to_string(a.size); }
};

OpView match_magnitude_view() { return counted_view<MatchMagnitudeArgs>(); }

}  // namespace foretoken
