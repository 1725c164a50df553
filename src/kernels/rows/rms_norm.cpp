#include "kernels/rows/rms_norm.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void rms_norm(Queue& queue, const RmsNormArgs& args) {
  FT_CHECK(args.counts != nullptr && args.residual != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.hidden > 0 && args.eps >= 0);
  FT_CHECK(args.row_offset >= 0 && (args.row_index != nullptr || args.row_offset == 0));
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  FT_CHECK(args.bias == nullptr || args.centred != 0);
  queue.launch(args);
}

template <>
struct Costs<RmsNormArgs> {
  static LiveRowsPlace place(const RmsNormArgs& a) { return {a.counts}; }
  static OpCost cost(const RmsNormArgs& a, const LiveRows& live) {
    const RowKind kind = a.row_index != nullptr ? RowKind::kLogits : RowKind::kToken;
    const int64_t rows = live_count(live, kind, a.row_offset, a.max_rows);
    // Gathered rows are not stored back.
    const int64_t adds = a.delta == nullptr ? 0 : a.row_index != nullptr ? 1 : 2;
    return {.weight_bytes = a.weight != nullptr ? a.hidden * kFloatBytes : 0,
            .row_bytes = rows * a.hidden * ((1 + adds) * kFloatBytes + size_of(a.out_dtype))};
  }
  static std::string shape(const RmsNormArgs& a) {
    return std::to_string(a.hidden) + (a.delta != nullptr ? ", adds" : "");
  }
};

OpView rms_norm_view() { return counted_view<RmsNormArgs>(); }

}  // namespace foretoken
