#include "kernels/experts/route_experts.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void route_experts(Queue& queue, const RouteExpertsArgs& args) {
  const ExpertLists& lists = args.lists;
  FT_CHECK(args.counts != nullptr && args.max_rows > 0);
  FT_CHECK(args.ids != nullptr && args.weights != nullptr);
  FT_CHECK(lists.begins != nullptr && lists.entries != nullptr);
  FT_CHECK(args.num_experts > 0 && args.num_experts <= kMaxExperts);
  FT_CHECK(args.first_expert >= 0 && lists.count > 0 &&
           args.first_expert + lists.count <= args.num_experts);
  FT_CHECK(args.num_groups > 0 && args.num_experts % args.num_groups == 0);
  FT_CHECK(args.top_groups > 0 && args.top_groups <= args.num_groups);
  const int32_t choice = args.num_experts / args.num_groups * args.top_groups;
  FT_CHECK(lists.top_k > 0 && lists.top_k <= kMaxTopExperts && lists.top_k <= choice);
  FT_CHECK(args.score != ExpertScore::kSparseMixer || args.num_groups == 1);
  FT_CHECK(args.table == nullptr || args.token_ids != nullptr);
  FT_CHECK(args.table == nullptr || args.score != ExpertScore::kSparseMixer);
  queue.launch(args);
}

template <>
struct Costs<RouteExpertsArgs> {
  static LiveRowsPlace place(const RouteExpertsArgs& a) { return {a.counts}; }
  static OpCost cost(const RouteExpertsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t choices = rows * a.lists.top_k;
    const int64_t routed = a.logits != nullptr ? rows : 0;
    return {.row_bytes = routed * a.num_experts * kFloatBytes +
                         choices * (2 * kIdBytes + kFloatBytes) + (a.lists.count + 1) * kIdBytes};
  }
  static std::string shape(const RouteExpertsArgs& a) {
    return std::to_string(a.lists.top_k) + " of " + std::to_string(a.num_experts);
  }
};

OpView route_experts_view() { return counted_view<RouteExpertsArgs>(); }

}  // namespace foretoken
