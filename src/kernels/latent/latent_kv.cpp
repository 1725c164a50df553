#include "kernels/latent/latent_kv.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void latent_kv(Queue& queue, const LatentKvArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.kv_norm != nullptr);
  FT_CHECK(args.positions != nullptr && args.kv_slot != nullptr && args.max_rows > 0);
  FT_CHECK(args.q_size > 0 && (args.q_norm == nullptr) == (args.q_out == nullptr));
  FT_CHECK(args.kv_rank > 0 && args.rope_dim > 0 && args.rope_dim % 2 == 0 && args.norm_eps >= 0);
  FT_CHECK(args.kv.k != nullptr && args.kv.v == args.kv.k && args.kv.block_size > 0);
  FT_CHECK(args.kv.num_kv_heads == 1);
  FT_CHECK(args.kv.head_dim == args.kv_rank + args.rope_dim && args.kv.head_dim <= kMaxHeadDim);
  FT_CHECK(args.kv.value_dim == args.kv_rank);
  FT_CHECK(args.kv.dtype == DType::kF32 || args.kv.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<LatentKvArgs> {
  static LiveRowsPlace place(const LatentKvArgs& a) { return {a.counts}; }
  static OpCost cost(const LatentKvArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t read = a.kv.head_dim + (a.q_norm != nullptr ? a.q_size : 0);
    const int64_t q_bytes = a.q_norm != nullptr ? a.q_size * size_of(a.kv.dtype) : 0;
    return {.kv_bytes = rows * kv_entry_bytes(a.kv),
            .row_bytes = rows * (read * kFloatBytes + q_bytes)};
  }
  static std::string shape(const LatentKvArgs& a) { return sizes_text(a.q_size, a.kv.head_dim); }
};

OpView latent_kv_view() { return counted_view<LatentKvArgs>(); }

}  // namespace foretoken
