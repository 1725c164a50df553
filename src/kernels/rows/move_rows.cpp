#include "kernels/rows/move_rows.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void move_rows(Queue& queue, const MoveRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.in != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.width > 0 && args.out_offset >= 0);
  FT_CHECK(args.out_offset + args.width <= args.out_stride);
  FT_CHECK(args.in_dtype == DType::kF32 || args.in_dtype == DType::kBF16);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<MoveRowsArgs> {
  static LiveRowsPlace place(const MoveRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const MoveRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, 0, a.max_rows);
    return {.row_bytes = rows * a.width * (size_of(a.in_dtype) + size_of(a.out_dtype))};
  }
  static std::string shape(const MoveRowsArgs& a) { return std::to_string(a.width); }
};

OpView move_rows_view() { return counted_view<MoveRowsArgs>(); }

}  // namespace foretoken
