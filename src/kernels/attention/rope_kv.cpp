#include "kernels/attention/rope_kv.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void rope_kv(Queue& queue, const RopeKvArgs& args) {
  FT_CHECK(args.counts != nullptr && args.qkv != nullptr && args.q_out != nullptr);
  FT_CHECK(args.positions != nullptr && args.kv_slot != nullptr && args.max_rows > 0);
  FT_CHECK(args.kv.k != nullptr && args.kv.v != nullptr && args.kv.block_size > 0);
  FT_CHECK(args.kv.head_dim > 0 && args.kv.head_dim <= kMaxHeadDim && args.kv.num_kv_heads >= 0 &&
           args.num_heads > 0);
  FT_CHECK(args.rotary_dim >= 0 && args.rotary_dim <= args.kv.head_dim);
  FT_CHECK(args.rotary_dim % 2 == 0);
  FT_CHECK(args.norm_eps >= 0 && args.clip >= 0 && args.query_scale.period > 0);
  FT_CHECK(args.kv.dtype == DType::kF32 || args.kv.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<RopeKvArgs> {
  static LiveRowsPlace place(const RopeKvArgs& a) { return {a.counts}; }
  static OpCost cost(const RopeKvArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t q = int64_t{a.num_heads} * a.kv.head_dim;
    const int64_t kv = int64_t{2} * a.kv.num_kv_heads * a.kv.head_dim;
    return {.kv_bytes = rows * 2 * a.kv.num_kv_heads * kv_entry_bytes(a.kv),
            .row_bytes = rows * ((q + kv) * kFloatBytes + q * size_of(a.kv.dtype))};
  }
  static std::string shape(const RopeKvArgs& a) { return sizes_text(a.num_heads, a.kv.head_dim); }
};

OpView rope_kv_view() { return counted_view<RopeKvArgs>(); }

}  // namespace foretoken
