#include "kernels/linear/causal_conv.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void causal_conv(Queue& queue, const CausalConvArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weights != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.history != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.channels > 0 && args.stride >= args.channels);
  FT_CHECK(args.width >= 2 && args.width <= kMaxConvWidth && args.history_rows >= args.width);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<CausalConvArgs> {
  static LiveRowsPlace place(const CausalConvArgs& a) { return {a.counts}; }
  static OpCost cost(const CausalConvArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t reads = 1 + (a.x_gate != nullptr ? 1 : 0) + (a.out_gate != nullptr ? 1 : 0);
    return {.weight_bytes = int64_t{a.channels} * a.width * kFloatBytes,
            .row_bytes = rows * a.channels * (reads * kFloatBytes + size_of(a.out_dtype)),
            .flops = 2 * rows * a.channels * a.width};
  }
  static std::string shape(const CausalConvArgs& a) { return sizes_text(a.channels, a.width); }
};

OpView causal_conv_view() { return counted_view<CausalConvArgs>(); }

}  // namespace foretoken
