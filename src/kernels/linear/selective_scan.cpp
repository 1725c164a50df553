#include "kernels/linear/selective_scan.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
#include "kernels/linear/state_run.h"
#include "kernels/op_view.h"

namespace foretoken {

void selective_scan(Queue& queue, const SelectiveScanArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.steps != nullptr);
  FT_CHECK(args.keys != nullptr && args.queries != nullptr && args.maps_stride >= args.d_state);
  FT_CHECK(args.rates != nullptr && args.skip != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.states != nullptr && args.committed != nullptr && args.pending != nullptr);
  FT_CHECK(args.channels > 0 && args.d_state > 0 && args.d_state <= kMaxScanState);
  FT_CHECK(args.max_rows > 0 && args.pending_rows > 0);
  queue.launch(args);
}

template <>
struct Costs<SelectiveScanArgs> {
  static LiveRowsPlace place(const SelectiveScanArgs& a) {
    return {a.counts, a.positions, a.row_slot};
  }
  static OpCost cost(const SelectiveScanArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const StateRows listed{
        live.positions.data(), live.row_slot.data(),
        static_cast<int32_t>(std::min<int64_t>(rows, std::ssize(live.row_slot)))};
    constexpr int64_t kFlops = 20;  // of a number of the state, with its decay
    return {.weight_bytes = a.state_size() * kFloatBytes,
            .kv_bytes = 2 * listed.num_runs() * a.state_size() * kFloatBytes,
            .row_bytes = rows * (3 * a.channels + 2 * a.d_state) * kFloatBytes,
            .flops = rows * kFlops * a.state_size()};
  }
  static std::string shape(const SelectiveScanArgs& a) { return sizes_text(a.channels, a.d_state); }
};

OpView selective_scan_view() { return counted_view<SelectiveScanArgs>(); }

}  // namespace foretoken
