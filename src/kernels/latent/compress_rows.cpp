#include "kernels/latent/compress_rows.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void compress_rows(Queue& queue, const CompressRowsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.bias != nullptr);
  FT_CHECK(args.positions != nullptr && (args.rope_dim == 0 || args.inv_freq != nullptr));
  FT_CHECK(args.row_slot != nullptr && args.kv_slot != nullptr && args.history != nullptr);
  FT_CHECK(args.entries != nullptr && args.max_rows > 0 && args.block_size > 0);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxCompressedDim);
  FT_CHECK(args.head_dim % kCompressedStep == 0 && args.ratio >= 2);
  FT_CHECK(args.rope_dim >= 0 && args.rope_dim % 2 == 0 && args.rope_dim <= args.head_dim);
  FT_CHECK(args.x_stride >= 2 * compressed_width(args));
  FT_CHECK(args.history_stride >= 2 * compressed_width(args));
  FT_CHECK(args.history_rows >= compressed_span(args) && args.norm_eps >= 0);
  FT_CHECK(args.norm == nullptr || args.norm_eps > 0);
  FT_CHECK(args.context_size > 0 && args.context_rank >= 0);
  FT_CHECK(args.context_rank < args.context_size);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<CompressRowsArgs> {
  static LiveRowsPlace place(const CompressRowsArgs& a) { return {a.counts}; }
  // One row of each window makes an entry.
  static OpCost cost(const CompressRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t width = compressed_width(a), made = (rows + a.ratio - 1) / a.ratio;
    return {.weight_bytes = a.ratio * width * kFloatBytes,
            .kv_bytes = made * entry_form(a).bytes(),
            .row_bytes = (rows * 2 + made * compressed_span(a)) * 2 * width * kFloatBytes,
            .flops = made * compressed_span(a) * a.head_dim * 4};
  }
  static std::string shape(const CompressRowsArgs& a) { return sizes_text(a.ratio, a.head_dim); }
};

OpView compress_rows_view() { return counted_view<CompressRowsArgs>(); }

}  // namespace foretoken
