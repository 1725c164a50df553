#include "kernels/attention/attend_disentangled.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void attend_disentangled(Queue& queue, const AttendDisentangledArgs& args) {
  FT_CHECK(args.counts != nullptr && args.qkv != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.last_seen != nullptr && args.places != nullptr);
  FT_CHECK(args.place_keys != nullptr && args.place_queries != nullptr);
  FT_CHECK(args.reach >= 0 && args.num_places > 0 && args.max_rows > 0 && args.num_heads > 0);
  FT_CHECK(args.head_dim > 0 && args.head_dim % 8 == 0 && kDisentangledDim % args.head_dim == 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<AttendDisentangledArgs> {
  static LiveRowsPlace place(const AttendDisentangledArgs& a) {
    return {a.counts, a.positions, nullptr};
  }
  // About as many keys as rows see before them and behind them.
  static OpCost cost(const AttendDisentangledArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    int64_t seen = 0;
    for (int64_t row = 0; row < rows; ++row) {
      seen += 2 * int64_t{live.positions.at(static_cast<size_t>(row))} + 1;
    }
    const int64_t width = int64_t{a.num_heads} * a.head_dim;
    return {.weight_bytes = 2 * int64_t{a.num_places} * width * kFloatBytes,
            .row_bytes = rows * width * (3 * kFloatBytes + size_of(a.dtype)),
            .flops = 8 * seen * width};
  }
  static std::string shape(const AttendDisentangledArgs& a) {
    return sizes_text(a.num_heads, a.head_dim);
  }
};

OpView attend_disentangled_view() { return counted_view<AttendDisentangledArgs>(); }

}  // namespace foretoken
