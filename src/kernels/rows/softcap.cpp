#include "kernels/rows/softcap.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void softcap(Queue& queue, const SoftcapArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.size > 0);
  FT_CHECK(args.cap >= 0 && args.scale > 0);
  queue.launch(args);
}

template <>
struct Costs<SoftcapArgs> {
  static LiveRowsPlace place(const SoftcapArgs& a) { return {a.counts}; }
  static OpCost cost(const SoftcapArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, a.row_offset, a.max_rows);
    return {.row_bytes = 2 * rows * a.size * kFloatBytes};
  }
  static std::string shape(const SoftcapArgs& a) { return std::to_string(a.size); }
};

OpView softcap_view() { return counted_view<SoftcapArgs>(); }

}  // namespace foretoken
