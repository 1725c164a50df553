#include "kernels/rows/norm_columns.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void norm_columns(Queue& queue, const NormColumnsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.max_rows > 0 && args.eps >= 0);
  FT_CHECK(args.column >= 0 && args.groups > 0 && args.size > 0);
  FT_CHECK(args.column + int64_t{args.groups} * args.size <= args.stride);
  queue.launch(args);
}

// It norms what it normed before where it runs again, which moves the same bytes.
template <>
struct Costs<NormColumnsArgs> {
  static LiveRowsPlace place(const NormColumnsArgs& a) { return {a.counts}; }
  static OpCost cost(const NormColumnsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t width = int64_t{a.groups} * a.size;
    return {.weight_bytes = a.weight != nullptr ? width * kFloatBytes : 0,
            .row_bytes = 2 * rows * width * kFloatBytes};
  }
  static std::string shape(const NormColumnsArgs& a) { return sizes_text(a.groups, a.size); }
};

OpView norm_columns_view() { return counted_view<NormColumnsArgs>(); }

}  // namespace foretoken
