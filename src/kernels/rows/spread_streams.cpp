#include "kernels/rows/spread_streams.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void spread_streams(Queue& queue, const SpreadStreamsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.made != nullptr && args.streams != nullptr);
  FT_CHECK(args.num_streams >= 2 && args.num_streams <= kMaxHyperStreams);
  FT_CHECK(args.max_rows > 0 && args.size > 0);
  queue.launch(args);
}

template <>
struct Costs<SpreadStreamsArgs> {
  static LiveRowsPlace place(const SpreadStreamsArgs& a) { return {a.counts}; }
  static OpCost cost(const SpreadStreamsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows), count = a.num_streams;
    const bool mixes = a.weights != nullptr;
    return {.row_bytes = rows * a.size * ((mixes ? 2 : 1) * count + 1) * kFloatBytes,
            .flops = mixes ? 2 * rows * a.size * count * (count + 1) : 0};
  }
  static std::string shape(const SpreadStreamsArgs& a) { return sizes_text(a.num_streams, a.size); }
};

OpView spread_streams_view() { return counted_view<SpreadStreamsArgs>(); }

}  // namespace foretoken
