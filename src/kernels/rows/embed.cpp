#include "kernels/rows/embed.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void embed(Queue& queue, const EmbedArgs& args) {
  FT_CHECK(args.counts != nullptr && args.token_ids != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.vocab > 0 && args.hidden > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.table.makes(args.dtype));
  FT_CHECK(args.norm_weight == nullptr || args.normed != nullptr);
  queue.launch(args);
}

template <>
struct Costs<EmbedArgs> {
  static LiveRowsPlace place(const EmbedArgs& a) { return {a.counts}; }
  static OpCost cost(const EmbedArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const bool norms = a.norm_weight != nullptr;
    const int64_t normed = norms ? size_of(a.dtype) : 0;
    return {.weight_bytes = norms ? a.hidden * kFloatBytes : 0,
            .row_bytes = rows * a.hidden * (size_of(a.table.dtype) + normed + kFloatBytes)};
  }
  static std::string shape(const EmbedArgs& a) {
    return std::to_string(a.hidden) + (a.norm_weight != nullptr ? ", norms" : "");
  }
};

OpView embed_view() { return counted_view<EmbedArgs>(); }

}  // namespace foretoken
