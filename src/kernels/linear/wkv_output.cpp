#include "kernels/linear/wkv_output.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void wkv_output(Queue& queue, const WkvOutputArgs& args) {
  FT_CHECK(args.counts != nullptr && args.left != nullptr && args.packed != nullptr);
  FT_CHECK(args.gates != nullptr && args.bonus != nullptr && args.out != nullptr);
  FT_CHECK(args.weights != nullptr && args.biases != nullptr);
  FT_CHECK(args.shape.key_heads > 0 && args.shape.key_heads == args.shape.value_heads);
  FT_CHECK(args.shape.key_dim > 0 && args.shape.value_dim > 0);
  FT_CHECK(args.max_rows > 0 && args.eps >= 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<WkvOutputArgs> {
  static LiveRowsPlace place(const WkvOutputArgs& a) { return {a.counts}; }
  static OpCost cost(const WkvOutputArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t floats = 3 * int64_t{a.shape.v_size()} + 2 * int64_t{a.shape.q_size()};
    return {.row_bytes = rows * (floats * kFloatBytes + a.shape.v_size() * size_of(a.dtype))};
  }
  static std::string shape(const WkvOutputArgs& a) {
    return sizes_text(a.shape.value_heads, a.shape.value_dim);
  }
};

OpView wkv_output_view() { return counted_view<WkvOutputArgs>(); }

}  // namespace foretoken
