#include "kernels/experts/combine_experts.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void combine_experts(Queue& queue, const CombineExpertsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.y != nullptr && args.ids != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.hidden > 0);
  FT_CHECK(args.top_k > 0 && args.top_k <= kMaxTopExperts);
  FT_CHECK(args.first_expert >= 0 && args.num_own > 0);
  FT_CHECK(args.shared_gate == nullptr || args.shared != nullptr);
  FT_CHECK(args.shared_is_one == 0 || args.shared != nullptr);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK((args.norm == nullptr) == (args.normed == nullptr) && args.norm_eps >= 0);
  queue.launch(args);
}

template <>
struct Costs<CombineExpertsArgs> {
  static LiveRowsPlace place(const CombineExpertsArgs& a) { return {a.counts}; }
  static OpCost cost(const CombineExpertsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t floats = 1 + (a.shared != nullptr ? 1 : 0) + (a.add != 0 ? 1 : 0);
    const int64_t elements = a.top_k + (a.norm != nullptr ? 1 : 0);
    return {.row_bytes = rows * a.hidden * (elements * size_of(a.dtype) + floats * kFloatBytes) +
                         rows * a.top_k * (kIdBytes + kFloatBytes),
            .flops = 2 * rows * a.top_k * a.hidden};
  }
  static std::string shape(const CombineExpertsArgs& a) {
    return sizes_text(a.top_k, a.hidden) + (a.norm != nullptr ? ", normed" : "");
  }
};

OpView combine_experts_view() { return counted_view<CombineExpertsArgs>(); }

}  // namespace foretoken
