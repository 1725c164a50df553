#include "kernels/rows/mask_keys.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void mask_keys(Queue& queue, const MaskKeysArgs& args) {
  FT_CHECK(args.counts != nullptr && args.qkv != nullptr && args.max_rows > 0);
  FT_CHECK(args.steps != nullptr && args.rates != nullptr && args.scale > 0);
  FT_CHECK(args.num_heads > 0 && args.num_kv_heads > 0);
  FT_CHECK(args.step_stride >= args.num_kv_heads);
  FT_CHECK(args.element >= 0 && args.element + 2 <= args.head_dim);
  queue.launch(args);
}

template <>
struct Costs<MaskKeysArgs> {
  static LiveRowsPlace place(const MaskKeysArgs& a) { return {a.counts}; }
  static OpCost cost(const MaskKeysArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t floats = 2 * int64_t{a.num_heads} + 3 * int64_t{a.num_kv_heads};
    return {.row_bytes = rows * floats * kFloatBytes};
  }
  static std::string shape(const MaskKeysArgs& a) {
    return sizes_text(a.num_heads + a.num_kv_heads, a.head_dim);
  }
};

OpView mask_keys_view() { return counted_view<MaskKeysArgs>(); }

}  // namespace foretoken
