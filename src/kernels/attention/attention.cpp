#include "kernels/attention/attention.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/check.h"
#include "kernels/flex/flex_program.h"
#include "kernels/op_view.h"

namespace foretoken {

// Its integer sums keep within 32 bits.
constexpr int kMaxInt8HeadDim = 512;

void attention(Queue& queue, const AttentionArgs& args) {
  FT_CHECK(args.counts != nullptr && args.q != nullptr);
  FT_CHECK((args.out != nullptr) != (args.states != nullptr));
  FT_CHECK(args.states != nullptr || args.kv.context_size == 1);
  if (args.states != nullptr) {
    FT_CHECK(args.part_heads > 0 && args.num_heads % args.part_heads == 0);
    FT_CHECK(args.sinks == nullptr);
  }
  FT_CHECK(args.positions != nullptr && args.row_slot != nullptr);
  FT_CHECK(args.block_tables != nullptr && args.max_blocks > 0 && args.max_rows > 0);
  FT_CHECK(args.kv.k != nullptr && args.kv.v != nullptr && args.kv.block_size > 0);
  FT_CHECK(args.kv.head_dim > 0 && args.kv.head_dim <= kMaxHeadDim);
  FT_CHECK(args.kv.num_kv_heads > 0 && args.num_heads > 0);
  FT_CHECK(args.num_heads % args.kv.num_kv_heads == 0 && args.window >= 0 && args.chunk >= 0);
  FT_CHECK(args.kv.value_dim >= 0 && args.kv.value_dim <= args.kv.head_dim);
  FT_CHECK(args.kv.value_dim == 0 || args.kv.v == args.kv.k);
  FT_CHECK(args.kv.format != KvFormat::kInt8 || args.kv.value_dim > 0 ||
           args.kv.head_dim <= kMaxInt8HeadDim);
  FT_CHECK(args.flex == nullptr || args.kv.value_dim == 0);
  if (args.of_heads.num_kv_heads > 0) {
    FT_CHECK(args.kv.num_kv_heads == 1 && args.max_rows % args.of_heads.num_kv_heads == 0);
    FT_CHECK(args.flex == nullptr ||
             (args.of_heads.positions != nullptr && args.of_heads.begins != nullptr));
    FT_CHECK(args.flex == nullptr || args.flex->among_chosen);
  }
  FT_CHECK(args.softcap >= 0 && args.kv_begin >= 0);
  FT_CHECK(args.last_seen == nullptr || (args.chunk == 0 && args.flex == nullptr));
  FT_CHECK(args.kv.dtype == DType::kF32 || args.kv.dtype == DType::kBF16);
  queue.launch(args);
}

namespace {

// Entries that a row sees.
struct Seen {
  int begin = 0;
  int end = 0;
  int64_t count() const { return std::max(end - begin, 0); }
};

Seen seen_by(const AttentionArgs& a, int position, int last) {
  return {entries_before(a.kv, first_seen(a, position)), entries_before(a.kv, last + 1)};
}

// Of the rows of a slot, which see to the end of theirs where they see later ones.
std::map<int32_t, int32_t> ends_of_slots(const LiveRows& live, int64_t num_rows) {
  std::map<int32_t, int32_t> ends;
  for (int64_t row = 0; row < num_rows; ++row) {
    const auto at = static_cast<size_t>(row);
    int32_t& end = ends[live.row_slot.at(at)];
    end = std::max(end, live.positions.at(at));
  }
  return ends;
}

int last_seen_of(const AttentionArgs& a, int position, int end) {
  if (a.last_seen == nullptr) return position;
  return a.window > 0 ? std::min(end, position + a.window - 1) : end;
}

}  // namespace

template <>
struct Costs<AttentionArgs> {
  static LiveRowsPlace place(const AttentionArgs& a) { return {a.counts, a.positions, a.row_slot}; }
  // The rows of a sequence share what they see.
  static OpCost cost(const AttentionArgs& a, const LiveRows& live) {
    const int64_t num_rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const std::map<int32_t, int32_t> ends = ends_of_slots(live, num_rows);
    std::map<int32_t, Seen> of_slot;
    int64_t products = 0;
    for (int64_t row = 0; row < num_rows; ++row) {
      const auto at = static_cast<size_t>(row);
      const int32_t slot = live.row_slot.at(at), position = live.positions.at(at);
      const Seen seen = seen_by(a, position, last_seen_of(a, position, ends.at(slot)));
      const auto [found, is_new] = of_slot.try_emplace(slot, seen);
      found->second.begin = std::min(found->second.begin, seen.begin);
      found->second.end = std::max(found->second.end, seen.end);
      products += seen.count();
    }
    int64_t entries = 0;
    for (const auto& [slot, seen] : of_slot) entries += seen.count();
    const int64_t q_and_out = int64_t{a.num_heads} * (a.kv.head_dim + a.kv.value_size());
    const int64_t parts = a.kv.value_dim > 0 ? 1 : 2;
    return {.kv_bytes = entries * parts * a.kv.num_kv_heads * kv_entry_bytes(a.kv),
            .row_bytes = num_rows * q_and_out * size_of(a.kv.dtype),
            .flops = 2 * products * q_and_out};
  }
  static std::string shape(const AttentionArgs& a) {
    return sizes_text(a.num_heads, a.kv.head_dim) + " over " + std::to_string(a.kv.num_kv_heads) +
           (a.window > 0 ? ", window " + std::to_string(a.window) : "") +
           kv_format_suffix(a.kv.format) + ", " + attention_family_name(a.family);
  }
};

OpView attention_view() { return counted_view<AttentionArgs>(); }

}  // namespace foretoken
