#include "kernels/draft/pair_rows.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void pair_rows(Queue& queue, const PairRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.token_ids != nullptr);
  FT_CHECK(args.states != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.vocab > 0 && args.hidden > 0 && args.eps >= 0);
  FT_CHECK(args.states_dtype == DType::kF32 || args.states_dtype == DType::kBF16);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.table.makes(args.dtype));
  queue.launch(args);
}

template <>
struct Costs<PairRowsArgs> {
  static LiveRowsPlace place(const PairRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const PairRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * a.hidden *
                         (size_of(a.table.dtype) + 2 * size_of(a.dtype) + size_of(a.states_dtype))};
  }
  static std::string shape(const PairRowsArgs& a) { return std::to_string(a.hidden); }
};

OpView pair_rows_view() { return counted_view<PairRowsArgs>(); }

}  // namespace foretoken
