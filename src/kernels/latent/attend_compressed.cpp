#include "kernels/latent/attend_compressed.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void attend_compressed(Queue& queue, const AttendCompressedArgs& args) {
  FT_CHECK(args.counts != nullptr && args.q != nullptr);
  FT_CHECK((args.out != nullptr) != (args.states != nullptr));
  FT_CHECK((args.sinks != nullptr) == (args.states == nullptr));
  FT_CHECK(args.context_size > 0 && args.context_rank >= 0);
  FT_CHECK(args.context_rank < args.context_size);
  FT_CHECK(args.states == nullptr ? args.context_size == 1
                                  : args.part_heads > 0 && args.num_heads % args.part_heads == 0);
  FT_CHECK((args.chosen_last != nullptr) == (args.chosen != nullptr && args.context_size > 1));
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr && args.kv != nullptr);
  FT_CHECK(args.window_tables != nullptr && args.inv_freq != nullptr);
  FT_CHECK(args.max_blocks > 0 && args.block_size > 0 && args.max_rows > 0);
  FT_CHECK(args.num_heads > 0 && args.window > 0 && args.ratio >= 0 && args.kv_begin >= 0);
  FT_CHECK(args.ratio == 0 || args.entries != nullptr);
  FT_CHECK(args.ratio == 0 || args.block_tables != nullptr);
  FT_CHECK(args.chosen == nullptr || (args.ratio > 0 && args.top > 0));
  FT_CHECK(args.head_dim > 0 && args.head_dim <= kMaxCompressedDim);
  FT_CHECK(args.head_dim % kCompressedStep == 0);
  FT_CHECK(args.rope_dim > 0 && args.rope_dim % 2 == 0 && args.rope_dim <= args.head_dim);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<AttendCompressedArgs> {
  static LiveRowsPlace place(const AttendCompressedArgs& a) {
    return {a.counts, a.positions, a.row_slot};
  }
  static OpCost cost(const AttendCompressedArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    int64_t seen = 0;
    AttendCompressedArgs shared = a;
    shared.chosen_last = nullptr;  // about as many as of the other ranks
    for (int32_t row = 0; row < rows; ++row) {
      const CompressedSight sight =
          compressed_sight(shared, row, live.positions.at(static_cast<size_t>(row)));
      seen += sight.num_window + sight.num_entries;
    }
    const int64_t width = int64_t{a.num_heads} * a.head_dim;
    return {.kv_bytes = seen * entry_form(a).bytes(),
            .row_bytes = 2 * rows * width * size_of(a.dtype),
            .flops = 4 * seen * width};
  }
  static std::string shape(const AttendCompressedArgs& a) {
    return sizes_text(a.num_heads, a.head_dim) + kv_format_suffix(a.format);
  }
};

OpView attend_compressed_view() { return counted_view<AttendCompressedArgs>(); }

}  // namespace foretoken
