#include "kernels/latent/choose_blocks.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/latent/index_rows.h"
#include "kernels/op_view.h"

namespace foretoken {

void choose_blocks(Queue& queue, const ChooseBlocksArgs& args) {
  FT_CHECK(args.counts != nullptr && args.q != nullptr && args.keys != nullptr);
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr && args.block_tables != nullptr);
  FT_CHECK(args.rows_of_heads != nullptr && args.pages != nullptr && args.last != nullptr);
  FT_CHECK(args.rows != nullptr && args.workspace != nullptr);
  FT_CHECK(args.max_blocks > 0 && args.block_size > 0 && args.kv_begin >= 0 && args.max_rows > 0);
  FT_CHECK(args.num_heads > 0 && args.num_heads <= kMaxIndexHeads);
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxIndexDim);
  FT_CHECK(args.head_dim % kIndexDimStep == 0 && args.choice >= args.num_heads);
  FT_CHECK(args.page == chosen_page_size(args.choice, args.block_size, args.kv_begin));
  FT_CHECK(score_stride(args) * args.num_heads <= kMaxScores);
  FT_CHECK(args.top > 0 && args.top <= kMaxChosenBlocks);
  FT_CHECK(args.first >= 0 && args.nearest > 0 && args.first + args.nearest <= args.top);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<ChooseBlocksArgs> {
  static LiveRowsPlace place(const ChooseBlocksArgs& a) {
    return {a.counts, a.positions, a.row_slot};
  }
  // Each row reads the keys that it sees; none where all of their blocks are chosen.
  static OpCost cost(const ChooseBlocksArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    int64_t scored = 0, pages = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int position = live.positions.at(static_cast<size_t>(row));
      const int64_t seen = position + 1 - std::min(a.kv_begin, position);
      const int64_t most = int64_t{a.top} * a.choice;
      if (seen > most) scored += seen;
      pages += std::min(seen, most) / a.page + 1;
    }
    const int64_t width = int64_t{a.num_heads} * a.head_dim;
    return {.kv_bytes = scored * a.head_dim * size_of(a.dtype),
            .row_bytes = rows * width * size_of(a.dtype) + pages * a.num_heads * kIdBytes,
            .flops = 2 * scored * width};
  }
  static std::string shape(const ChooseBlocksArgs& a) {
    return std::to_string(a.top) + " blocks of " + std::to_string(a.choice) + " by " +
           sizes_text(a.num_heads, a.head_dim);
  }
};

OpView choose_blocks_view() { return counted_view<ChooseBlocksArgs>(); }

}  // namespace foretoken
