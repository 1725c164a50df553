#include "kernels/latent/index_rows.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void index_rows(Queue& queue, const IndexRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.key != nullptr && args.queries != nullptr);
  FT_CHECK(args.q_out != nullptr && args.positions != nullptr && args.kv_slot != nullptr);
  FT_CHECK(args.norm_weight != nullptr && args.keys != nullptr);
  FT_CHECK(args.norm_bias == nullptr || args.query_norm == nullptr);
  FT_CHECK(args.stride == 0 || args.stride >= args.num_heads * args.head_dim);
  FT_CHECK(args.max_rows > 0 && args.num_heads > 0 && args.norm_eps >= 0);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxIndexDim);
  FT_CHECK(args.rope_dim > 0 && args.rope_dim % 2 == 0 && args.rope_dim <= args.head_dim);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<IndexRowsArgs> {
  static LiveRowsPlace place(const IndexRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const IndexRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t queries = int64_t{a.num_heads} * a.head_dim;
    return {
        .kv_bytes = rows * a.head_dim * size_of(a.dtype),
        .row_bytes = rows * ((queries + a.head_dim) * kFloatBytes + queries * size_of(a.dtype))};
  }
  static std::string shape(const IndexRowsArgs& a) { return sizes_text(a.num_heads, a.head_dim); }
};

OpView index_rows_view() { return counted_view<IndexRowsArgs>(); }

}  // namespace foretoken
