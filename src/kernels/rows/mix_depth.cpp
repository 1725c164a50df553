#include "kernels/rows/mix_depth.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void mix_depth(Queue& queue, const MixDepthArgs& args) {
  FT_CHECK(args.counts != nullptr && args.residual != nullptr && args.blocks != nullptr);
  FT_CHECK(args.weights != nullptr && args.out != nullptr);
  FT_CHECK(args.num_blocks > 0 && args.num_blocks <= kMaxDepthBlocks);
  FT_CHECK(args.max_rows > 0 && args.block_rows >= args.max_rows && args.size > 0);
  queue.launch(args);
}

template <>
struct Costs<MixDepthArgs> {
  static LiveRowsPlace place(const MixDepthArgs& a) { return {a.counts}; }
  static OpCost cost(const MixDepthArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t values = a.num_blocks + 1, others = a.delta != nullptr ? 3 : 1;
    return {.row_bytes = rows * a.size * (values + others) * kFloatBytes,
            .flops = 6 * rows * a.size * values};
  }
  static std::string shape(const MixDepthArgs& a) { return sizes_text(a.num_blocks + 1, a.size); }
};

OpView mix_depth_view() { return counted_view<MixDepthArgs>(); }

}  // namespace foretoken
