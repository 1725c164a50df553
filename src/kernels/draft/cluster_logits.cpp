#include "kernels/draft/cluster_logits.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void cluster_logits(Queue& queue, const ClusterLogitsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.scores != nullptr);
  FT_CHECK(args.table != nullptr && args.ids != nullptr && args.out != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.k > 0 && args.vocab > 0);
  FT_CHECK(args.clusters > 0 && args.clusters <= ClusterLogitsArgs::kMaxClusters && args.each > 0);
  FT_CHECK(args.top > 0 && args.top <= args.clusters);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<ClusterLogitsArgs> {
  static LiveRowsPlace place(const ClusterLogitsArgs& a) { return {a.counts}; }
  static OpCost cost(const ClusterLogitsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kLogits, a.row_offset, a.max_rows);
    const int64_t matrix_rows = int64_t{a.top} * a.each;
    const int64_t read = (matrix_rows + 1) * a.k * size_of(a.dtype) + matrix_rows * kIdBytes;
    return {.row_bytes = rows * (read + (int64_t{a.clusters} + a.vocab) * kFloatBytes)};
  }
  static std::string shape(const ClusterLogitsArgs& a) {
    return sizes_text(a.vocab, a.k) + ", " + std::to_string(a.top) + " of " +
           std::to_string(a.clusters);
  }
};

OpView cluster_logits_view() { return counted_view<ClusterLogitsArgs>(); }

}  // namespace foretoken
