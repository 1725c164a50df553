#include "kernels/rows/round_rows.h"

#include <cmath>
#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void round_rows(Queue& queue, const RoundRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.rounded != nullptr);
  FT_CHECK(args.x != args.rounded && args.row_offset >= 0);
  FT_CHECK(args.max_rows > 0 && args.columns > 0);
  FT_CHECK(args.per_row > 0 && args.max_rows % args.per_row == 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.scale >= 0 && std::isfinite(args.scale));
  FT_CHECK(args.highest == nullptr || (args.rounding == RowRounding::kInt8 && args.per_row == 1));
  FT_CHECK(args.num_highest >= 0 && args.num_highest <= args.num_entries);
  queue.launch(args);
}

template <>
struct Costs<RoundRowsArgs> {
  static LiveRowsPlace place(const RoundRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const RoundRowsArgs& a, const LiveRows& live) {
    const int64_t rows =
        live_count(live, a.row_kind, a.row_offset, a.max_rows / a.per_row) * a.per_row;
    const int64_t written = a.rounding == RowRounding::kInt8 ? size_of(a.dtype) : 1;
    return {.row_bytes = rows * a.columns * (size_of(a.dtype) + written)};
  }
  static std::string shape(const RoundRowsArgs& a) { return std::to_string(a.columns); }
};

OpView round_rows_view() { return counted_view<RoundRowsArgs>(); }

}  // namespace foretoken
