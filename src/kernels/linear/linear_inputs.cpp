#include "kernels/linear/linear_inputs.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void linear_inputs(Queue& queue, const LinearInputsArgs& args) {
  const LinearShape& shape = args.shape;
  FT_CHECK(args.counts != nullptr && args.q != nullptr && args.k != nullptr && args.v != nullptr);
  FT_CHECK(args.rates != nullptr && args.out != nullptr && args.max_rows > 0 && args.stride > 0);
  FT_CHECK(shape.key_heads > 0 && shape.value_heads % shape.key_heads == 0);
  FT_CHECK(shape.key_dim > 0 && shape.key_dim <= kMaxLinearKeyDim && shape.value_dim > 0);
  FT_CHECK(shape.scaled == (args.gates != LinearGates::kFixed));
  const bool by_delta = args.gates == LinearGates::kDelta || args.gates == LinearGates::kBounded;
  FT_CHECK(!shape.channel_decay || by_delta);
  FT_CHECK(args.gates == LinearGates::kFixed || args.decay != nullptr);
  FT_CHECK(!by_delta || args.scale != nullptr);
  FT_CHECK(args.lower_bound <= 0);
  queue.launch(args);
}

template <>
struct Costs<LinearInputsArgs> {
  static LiveRowsPlace place(const LinearInputsArgs& a) { return {a.counts}; }
  static OpCost cost(const LinearInputsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * 2 * a.shape.row_size() * kFloatBytes};
  }
  static std::string shape(const LinearInputsArgs& a) {
    return sizes_text(a.shape.value_heads, a.shape.row_size());
  }
};

OpView linear_inputs_view() { return counted_view<LinearInputsArgs>(); }

}  // namespace foretoken
