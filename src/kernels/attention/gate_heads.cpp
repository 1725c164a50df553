#include "kernels/attention/gate_heads.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void gate_heads(Queue& queue, const GateHeadsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.gates != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_heads > 0 && args.head_dim > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<GateHeadsArgs> {
  static LiveRowsPlace place(const GateHeadsArgs& a) { return {a.counts}; }
  static OpCost cost(const GateHeadsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t size = int64_t{a.num_heads} * a.head_dim;
    const int64_t gates = a.each_element != 0 ? size : a.num_heads;
    return {.row_bytes = rows * (2 * size * size_of(a.dtype) + gates * kFloatBytes)};
  }
  static std::string shape(const GateHeadsArgs& a) { return sizes_text(a.num_heads, a.head_dim); }
};

OpView gate_heads_view() { return counted_view<GateHeadsArgs>(); }

}  // namespace foretoken
