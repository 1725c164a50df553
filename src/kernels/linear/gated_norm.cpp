#include "kernels/linear/gated_norm.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void gated_norm(Queue& queue, const GatedNormArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_groups > 0 && args.group_size > 0 && args.eps >= 0);
  FT_CHECK((args.gate == NormGate::kNone) == (args.gates == nullptr));
  FT_CHECK(args.gates == nullptr || args.gate_stride >= args.num_groups * args.group_size);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<GatedNormArgs> {
  static LiveRowsPlace place(const GatedNormArgs& a) { return {a.counts}; }
  static OpCost cost(const GatedNormArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t size = int64_t{a.num_groups} * a.group_size;
    const int64_t reads = a.gates != nullptr ? 2 : 1;
    return {.row_bytes = rows * size * (reads * kFloatBytes + size_of(a.dtype))};
  }
  static std::string shape(const GatedNormArgs& a) {
    return sizes_text(a.num_groups, a.group_size);
  }
};

OpView gated_norm_view() { return counted_view<GatedNormArgs>(); }

}  // namespace foretoken
