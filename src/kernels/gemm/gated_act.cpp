#include "kernels/gemm/gated_act.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void gated_act(Queue& queue, const GatedActArgs& args) {
  FT_CHECK(args.counts != nullptr && args.gate_up != nullptr && args.out != nullptr);
  FT_CHECK(args.bias == nullptr || args.weight != nullptr);
  FT_CHECK(args.max_rows > 0 && args.size > 0);
  FT_CHECK(args.weight == nullptr ? has_gated_act(args.activation)
                                  : has_gated_form(args.activation));
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<GatedActArgs> {
  static LiveRowsPlace place(const GatedActArgs& a) { return {a.counts}; }
  static OpCost cost(const GatedActArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * a.size * (2 * kFloatBytes + size_of(a.out_dtype))};
  }
  static std::string shape(const GatedActArgs& a) { return std::to_string(a.size); }
};

OpView gated_act_view() { return counted_view<GatedActArgs>(); }

}  // namespace foretoken
