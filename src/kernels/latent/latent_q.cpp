#include "kernels/latent/latent_q.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void latent_q(Queue& queue, const LatentQArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.nope != nullptr);
  FT_CHECK(args.q != nullptr && args.positions != nullptr && args.max_rows > 0);
  FT_CHECK(args.num_heads > 0 && args.nope_dim > 0 && args.kv_rank > 0);
  FT_CHECK(args.rope_dim > 0 && args.rope_dim % 2 == 0 && args.rope_dim <= kMaxHeadDim);
  FT_CHECK(args.x_stride >= args.num_heads * (args.nope_dim + args.rope_dim));
  FT_CHECK(args.query_scale.period > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.absorb == nullptr || args.kv_rank % kHeadColumns == 0);
  queue.launch(args);
}

template <>
struct Costs<LatentQArgs> {
  static LiveRowsPlace place(const LatentQArgs& a) { return {a.counts}; }
  static OpCost cost(const LatentQArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t width = int64_t{a.num_heads} * (a.nope_dim + a.rope_dim);
    if (a.absorb == nullptr) {
      return {.row_bytes = rows * width * (kFloatBytes + size_of(a.dtype))};
    }
    const int64_t out = int64_t{a.num_heads} * (a.kv_rank + a.rope_dim);
    return {.weight_bytes = packed_bytes(weights(a).elements, a.dtype, live),
            .row_bytes = rows * (width * kFloatBytes + out * size_of(a.dtype)),
            .flops = 2 * rows * weights(a).elements};
  }
  static std::string shape(const LatentQArgs& a) {
    const std::string heads = sizes_text(a.num_heads, a.nope_dim + a.rope_dim);
    return a.absorb == nullptr ? heads : heads + " to " + std::to_string(a.kv_rank);
  }
  static Weights weights(const LatentQArgs& a) {
    if (a.absorb == nullptr) return {};
    return {{a.absorb}, int64_t{a.num_heads} * a.kv_rank * a.nope_dim};
  }
};

OpView latent_q_view() { return counted_view<LatentQArgs>(); }

}  // namespace foretoken
