#include "kernels/draft/spread_logits.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void spread_logits(Queue& queue, const SpreadLogitsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.in != nullptr && args.id_map != nullptr);
  FT_CHECK(args.out != nullptr && args.row_offset >= 0 && args.max_rows > 0);
  FT_CHECK(args.n > 0 && args.vocab > 0);
  queue.launch(args);
}

template <>
struct Costs<SpreadLogitsArgs> {
  static LiveRowsPlace place(const SpreadLogitsArgs& a) { return {a.counts}; }
  static OpCost cost(const SpreadLogitsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kLogits, a.row_offset, a.max_rows);
    return {.row_bytes = rows * (int64_t{a.n} + a.vocab) * kFloatBytes};
  }
  static std::string shape(const SpreadLogitsArgs& a) { return sizes_text(a.n, a.vocab); }
};

OpView spread_logits_view() { return counted_view<SpreadLogitsArgs>(); }

}  // namespace foretoken
