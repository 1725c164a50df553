#include "kernels/linear/turn_heads.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void turn_heads(Queue& queue, const TurnHeadsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.positions != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_queries > 0 && args.num_keys > 0);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxHeadDim);
  FT_CHECK(args.rotary_dim >= 0 && args.rotary_dim % 2 == 0 && args.rotary_dim <= args.head_dim);
  FT_CHECK(args.stride >= (args.num_queries + args.num_keys) * args.head_dim);
  queue.launch(args);
}

template <>
struct Costs<TurnHeadsArgs> {
  static LiveRowsPlace place(const TurnHeadsArgs& a) { return {a.counts}; }
  static OpCost cost(const TurnHeadsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t size = int64_t{a.num_queries + a.num_keys} * a.head_dim;
    return {.row_bytes = 2 * rows * size * kFloatBytes};
  }
  static std::string shape(const TurnHeadsArgs& a) {
    return sizes_text(a.num_queries + a.num_keys, a.head_dim);
  }
};

OpView turn_heads_view() { return counted_view<TurnHeadsArgs>(); }

}  // namespace foretoken
