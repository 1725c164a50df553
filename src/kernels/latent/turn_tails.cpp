#include "kernels/latent/turn_tails.h"

#include <string>

#include "base/check.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/op_view.h"

namespace foretoken {

void turn_tails(Queue& queue, const TurnTailsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.positions != nullptr && args.max_rows > 0 && args.num_heads > 0);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxTailHead);
  FT_CHECK(args.x_stride >= args.num_heads * args.head_dim);
  FT_CHECK(args.rope_dim >= 0 && args.rope_dim % 2 == 0 && args.rope_dim <= args.head_dim);
  FT_CHECK(args.rope_dim <= kMaxHeadDim && (args.rope_dim == 0 || args.inv_freq != nullptr));
  FT_CHECK(args.norm_eps >= 0 && (args.norm == nullptr || args.norm_eps > 0));
  FT_CHECK(args.entry_slot == nullptr || args.num_heads == 1);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.format == KvFormat::kPlain || args.entry_slot != nullptr);
  FT_CHECK(args.format == KvFormat::kPlain || args.head_dim <= kMaxHeadDim);
  queue.launch(args);
}

template <>
struct Costs<TurnTailsArgs> {
  static LiveRowsPlace place(const TurnTailsArgs& a) { return {a.counts}; }
  static OpCost cost(const TurnTailsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t elements = rows * a.num_heads * a.head_dim;
    const int64_t out = rows * a.num_heads * entry_form(a).bytes();
    return {.kv_bytes = a.entry_slot != nullptr ? out : 0,
            .row_bytes = elements * kFloatBytes + (a.entry_slot != nullptr ? 0 : out)};
  }
  static std::string shape(const TurnTailsArgs& a) { return sizes_text(a.num_heads, a.head_dim); }
};

OpView turn_tails_view() { return counted_view<TurnTailsArgs>(); }

}  // namespace foretoken
