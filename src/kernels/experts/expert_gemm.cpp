#include "kernels/experts/expert_gemm.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/op_view.h"
#include "spec/touched_experts.h"

namespace foretoken {

void expert_gemm(Queue& queue, const ExpertGemmArgs& args) {
  const ExpertLists& lists = args.lists;
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK(args.y != nullptr && args.max_rows > 0);
  FT_CHECK(lists.begins != nullptr && lists.entries != nullptr);
  FT_CHECK(lists.count > 0 && lists.count <= kMaxExperts);
  FT_CHECK(lists.num_experts == 0 || lists.num_experts >= lists.count);
  FT_CHECK(lists.top_k > 0 && lists.top_k <= kMaxTopExperts);
  FT_CHECK(args.n > 0 && args.n % (args.gated != 0 ? 2 * kExpertColumns : kExpertColumns) == 0);
  FT_CHECK(args.k > 0 && args.k % 8 == 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.gated == 0 || has_expert_form(args.activation));
  const SharedExpert& shared = args.shared;
  FT_CHECK(shared.weight == nullptr ||
           (shared.x != nullptr && shared.y != nullptr && shared.n > 0 && shared.k > 0 &&
            (args.gated == 0 || has_gated_form(args.activation))));
  queue.launch(args);
}

// As if rows chose evenly among the experts of all ranks: counts of what they chose stay on the
// device.
template <>
struct Costs<ExpertGemmArgs> {
  static LiveRowsPlace place(const ExpertGemmArgs& a) { return {a.counts}; }
  static OpCost cost(const ExpertGemmArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int32_t all_experts = a.lists.all_experts();
    const int64_t entries = (rows * a.lists.top_k * a.lists.count + all_experts - 1) / all_experts;
    const int64_t expert = int64_t{a.n} * a.k;
    const int64_t elements = a.lists.count * expert;
    LiveRows own = live;  // what is packed belongs to both in proportion to their elements
    own.weight_bytes = static_cast<int64_t>(static_cast<double>(live.weight_bytes) *
                                            static_cast<double>(elements) /
                                            static_cast<double>(elements + shared_elements(a)));
    const auto all = static_cast<double>(packed_bytes(elements, a.dtype, own));
    const int32_t top_k = std::min(a.lists.top_k, all_experts);
    const double share = touched_share(all_experts, top_k, rows);
    const int64_t out = a.gated != 0 ? a.n / 2 : a.n;
    OpCost cost{
        .weight_bytes = static_cast<int64_t>(all * share),
        .row_bytes = ((a.by_entry != 0 ? entries : rows) * a.k + entries * out) * size_of(a.dtype),
        .flops = 2 * entries * expert};
    if (a.shared.weight == nullptr) return cost;
    const GemmArgs product = shared_product(a);
    own.weight_bytes = live.weight_bytes - own.weight_bytes;
    cost += gemm_view().cost(&product, own);
    return cost;
  }
  static std::string shape(const ExpertGemmArgs& a) {
    return std::to_string(a.lists.count) + " x " + sizes_text(a.n, a.k) +
           (a.gated != 0 ? ", gated" : "") +
           (a.shared.weight != nullptr ? " + " + sizes_text(a.shared.n, a.shared.k) : "");
  }
  static Weights weights(const ExpertGemmArgs& a) {
    Weights all{{a.weight}, int64_t{a.lists.count} * a.n * a.k + shared_elements(a)};
    if (a.shared.weight != nullptr) all.handles.push_back(a.shared.weight);
    return all;
  }

 private:
  static int64_t shared_elements(const ExpertGemmArgs& a) {
    return a.shared.weight != nullptr ? int64_t{a.shared.n} * a.shared.k : 0;
  }
};

OpView expert_gemm_view() { return counted_view<ExpertGemmArgs>(); }

}  // namespace foretoken
