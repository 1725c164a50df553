#include "kernels/rows/cut_low.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void cut_low(Queue& queue, const CutLowArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.max_rows > 0);
  FT_CHECK(args.size > 0 && args.size <= args.stride && args.num_parts > 0);
  FT_CHECK(args.moments == nullptr || 2 * args.num_parts <= args.num_entries);
  queue.launch(args);
}

template <>
struct Costs<CutLowArgs> {
  static LiveRowsPlace place(const CutLowArgs& a) { return {a.counts}; }
  static OpCost cost(const CutLowArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = 2 * rows * a.size * kFloatBytes};
  }
  static std::string shape(const CutLowArgs& a) { return std::to_string(a.size); }
};

OpView cut_low_view() { return counted_view<CutLowArgs>(); }

}  // namespace foretoken
