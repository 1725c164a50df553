#include "kernels/linear/shift_rows.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void shift_rows(Queue& queue, const ShiftRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.x != args.out && args.mixes != nullptr && args.history != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.num_mixes > 0 && args.size > 0 && args.max_rows > 0);
  FT_CHECK(args.history_rows > 0 && args.history_stride >= args.size);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<ShiftRowsArgs> {
  static LiveRowsPlace place(const ShiftRowsArgs& a) { return {a.counts, a.positions, a.row_slot}; }
  static OpCost cost(const ShiftRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t each = (1 + int64_t{a.num_mixes}) * size_of(a.dtype) + kFloatBytes;
    return {.row_bytes = rows * a.size * each};
  }
  static std::string shape(const ShiftRowsArgs& a) { return sizes_text(a.num_mixes, a.size); }
};

OpView shift_rows_view() { return counted_view<ShiftRowsArgs>(); }

}  // namespace foretoken
