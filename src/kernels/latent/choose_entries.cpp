#include "kernels/latent/choose_entries.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/latent/index_rows.h"
#include "kernels/op_view.h"

namespace foretoken {

void choose_entries(Queue& queue, const ChooseEntriesArgs& args) {
  FT_CHECK(args.counts != nullptr && args.q != nullptr && args.weights != nullptr);
  FT_CHECK(args.keys != nullptr && args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.block_tables != nullptr && args.entries != nullptr && args.last != nullptr);
  FT_CHECK(args.rows != nullptr && args.workspace != nullptr);
  FT_CHECK(args.max_blocks > 0 && args.block_size > 0);
  FT_CHECK(args.context_size > 0 && args.block_size % args.context_size == 0);
  FT_CHECK(args.context_rank >= 0 && args.context_rank < args.context_size);
  FT_CHECK(int64_t{args.max_blocks} * args.block_size <= kMaxScores);
  FT_CHECK(args.kv_begin >= 0 && args.max_rows > 0);
  FT_CHECK(args.num_heads > 0 && args.num_heads <= kMaxIndexHeads);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxIndexDim);
  FT_CHECK(args.head_dim % kIndexDimStep == 0);
  FT_CHECK(args.positions_each > 0);
  FT_CHECK(args.spreads == 0 || args.positions_each % args.context_size == 0);
  FT_CHECK(args.top > 0 && args.top <= kMaxChosen);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<ChooseEntriesArgs> {
  static LiveRowsPlace place(const ChooseEntriesArgs& a) {
    return {a.counts, a.positions, a.row_slot};
  }
  // Each row reads what it sees; nothing where all of it is chosen.
  static OpCost cost(const ChooseEntriesArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    int64_t scored = 0, chosen = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int position = live.positions.at(static_cast<size_t>(row));
      const SeenKeys keys = seen_keys(a, position);
      const int64_t seen = keys.end - keys.begin;
      if (seen > a.top) scored += seen;
      chosen += std::min<int64_t>(seen, a.top);
    }
    const int64_t width = int64_t{a.num_heads} * a.head_dim;
    return {.kv_bytes = scored * a.head_dim * size_of(a.dtype),
            .row_bytes =
                rows * (width * size_of(a.dtype) + a.num_heads * kFloatBytes) + chosen * kIdBytes,
            .flops = 2 * scored * width};
  }
  static std::string shape(const ChooseEntriesArgs& a) {
    return std::to_string(a.top) + " by " + sizes_text(a.num_heads, a.head_dim);
  }
};

OpView choose_entries_view() { return counted_view<ChooseEntriesArgs>(); }

}  // namespace foretoken
