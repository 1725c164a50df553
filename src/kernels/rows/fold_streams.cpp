#include "kernels/rows/fold_streams.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void fold_streams(Queue& queue, const FoldStreamsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.streams != nullptr && args.fn != nullptr);
  FT_CHECK(args.base != nullptr && args.scale != nullptr && args.folded != nullptr);
  FT_CHECK(args.num_streams >= 2 && args.num_streams <= kMaxHyperStreams);
  FT_CHECK(args.max_rows > 0 && args.size > 0 && args.norm_eps > 0 && args.eps >= 0);
  FT_CHECK(args.rounds >= 0);
  queue.launch(args);
}

template <>
struct Costs<FoldStreamsArgs> {
  static LiveRowsPlace place(const FoldStreamsArgs& a) { return {a.counts}; }
  static OpCost cost(const FoldStreamsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t made = num_hyper_weights(a.num_streams, a.learned());
    const int64_t width = int64_t{a.num_streams} * a.size;
    return {.weight_bytes = made * width * kFloatBytes,
            .row_bytes = rows * (2 * width + a.size) * kFloatBytes,
            .flops = 2 * rows * (made + 2) * width};
  }
  static std::string shape(const FoldStreamsArgs& a) { return sizes_text(a.num_streams, a.size); }
};

OpView fold_streams_view() { return counted_view<FoldStreamsArgs>(); }

}  // namespace foretoken
