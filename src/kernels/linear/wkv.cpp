#include "kernels/linear/wkv.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
#include "kernels/linear/state_run.h"
#include "kernels/op_view.h"

namespace foretoken {

void wkv(Queue& queue, const WkvArgs& args) {
  const LinearShape& shape = args.shape;
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.states != nullptr && args.committed != nullptr && args.pending != nullptr);
  FT_CHECK(shape.key_heads > 0 && shape.value_heads == shape.key_heads);
  FT_CHECK(shape.channel_decay && shape.removes && !shape.scaled);
  FT_CHECK(shape.key_dim > 0 && shape.key_dim <= kMaxWkvKeyDim && shape.value_dim > 0);
  FT_CHECK(args.max_rows > 0 && args.pending_rows > 0);
  queue.launch(args);
}

template <>
struct Costs<WkvArgs> {
  static LiveRowsPlace place(const WkvArgs& a) { return {a.counts, a.positions, a.row_slot}; }
  static OpCost cost(const WkvArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const StateRows listed{
        live.positions.data(), live.row_slot.data(),
        static_cast<int32_t>(std::min<int64_t>(rows, std::ssize(live.row_slot)))};
    return {.kv_bytes = 2 * listed.num_runs() * a.shape.state_size() * kFloatBytes,
            .row_bytes = rows * (a.shape.row_size() + a.shape.v_size()) * kFloatBytes,
            .flops = rows * 9 * a.shape.state_size()};
  }
  static std::string shape(const WkvArgs& a) {
    return std::to_string(a.shape.value_heads) + " heads, " +
           sizes_text(a.shape.key_dim, a.shape.value_dim);
  }
};

OpView wkv_view() { return counted_view<WkvArgs>(); }

}  // namespace foretoken
