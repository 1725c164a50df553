#include "kernels/linear/wkv_inputs.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void wkv_inputs(Queue& queue, const WkvInputsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.r != nullptr && args.k != nullptr && args.v != nullptr);
  FT_CHECK(args.decays != nullptr && args.rates != nullptr && args.first_values != nullptr);
  FT_CHECK(args.key_scale != nullptr && args.rate_scale != nullptr && args.out != nullptr);
  FT_CHECK(args.shape.key_heads > 0 && args.shape.key_heads == args.shape.value_heads);
  FT_CHECK(args.shape.key_dim > 0 && args.shape.key_dim == args.shape.value_dim);
  FT_CHECK(args.shape.channel_decay && args.shape.removes && !args.shape.scaled);
  FT_CHECK(args.max_rows > 0);
  queue.launch(args);
}

template <>
struct Costs<WkvInputsArgs> {
  static LiveRowsPlace place(const WkvInputsArgs& a) { return {a.counts}; }
  static OpCost cost(const WkvInputsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t reads = a.shares != nullptr ? 7 : 6;
    return {.row_bytes =
                rows * (reads * a.shape.v_size() + int64_t{a.shape.row_size()}) * kFloatBytes};
  }
  static std::string shape(const WkvInputsArgs& a) {
    return sizes_text(a.shape.value_heads, a.shape.key_dim);
  }
};

OpView wkv_inputs_view() { return counted_view<WkvInputsArgs>(); }

}  // namespace foretoken
