#include "kernels/linear/linear_attention.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
#include "kernels/linear/state_run.h"
#include "kernels/op_view.h"

namespace foretoken {

void linear_attention(Queue& queue, const LinearAttentionArgs& args) {
  const LinearShape& shape = args.shape;
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.states != nullptr && args.committed != nullptr && args.pending != nullptr);
  FT_CHECK(shape.key_heads > 0 && shape.value_heads % shape.key_heads == 0);
  FT_CHECK(shape.key_dim > 0 && shape.key_dim <= kMaxLinearKeyDim && shape.value_dim > 0);
  FT_CHECK(args.max_rows > 0 && args.pending_rows > 0);
  queue.launch(args);
}

template <>
struct Costs<LinearAttentionArgs> {
  static LiveRowsPlace place(const LinearAttentionArgs& a) {
    return {a.counts, a.positions, a.row_slot};
  }
  static OpCost cost(const LinearAttentionArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const StateRows listed{
        live.positions.data(), live.row_slot.data(),
        static_cast<int32_t>(std::min<int64_t>(rows, std::ssize(live.row_slot)))};
    const int64_t products = a.shape.delta ? 3 : 2;  // with S
    return {.kv_bytes = 2 * listed.num_runs() * a.shape.state_size() * kFloatBytes,
            .row_bytes = rows * (a.shape.row_size() + a.shape.v_size()) * kFloatBytes,
            .flops = rows * (2 * products + 1) * a.shape.state_size()};
  }
  static std::string shape(const LinearAttentionArgs& a) {
    return std::to_string(a.shape.value_heads) + " heads, " +
           sizes_text(a.shape.key_dim, a.shape.value_dim);
  }
};

OpView linear_attention_view() { return counted_view<LinearAttentionArgs>(); }

}  // namespace foretoken
