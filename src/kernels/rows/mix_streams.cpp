#include "kernels/rows/mix_streams.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void mix_streams(Queue& queue, const MixStreamsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.streams != nullptr && args.routed != nullptr);
  FT_CHECK(args.weights != nullptr && args.out != nullptr);
  FT_CHECK(args.num_streams > 0 && args.num_streams <= kMaxStreams);
  FT_CHECK(args.active >= 0 && args.active < args.num_streams);
  FT_CHECK(args.max_rows > 0 && args.stream_rows >= args.max_rows && args.size > 0);
  queue.launch(args);
}

template <>
struct Costs<MixStreamsArgs> {
  static LiveRowsPlace place(const MixStreamsArgs& a) { return {a.counts}; }
  static OpCost cost(const MixStreamsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows), count = a.num_streams;
    const int64_t others = a.activated != nullptr ? 2 : 1;
    return {.row_bytes = rows * a.size * (2 * count + others) * kFloatBytes,
            .flops = 2 * rows * a.size * count * (a.activated != nullptr ? 1 : count)};
  }
  static std::string shape(const MixStreamsArgs& a) { return sizes_text(a.num_streams, a.size); }
};

OpView mix_streams_view() { return counted_view<MixStreamsArgs>(); }

}  // namespace foretoken
