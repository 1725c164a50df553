#include "kernels/rows/norm_parts.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void norm_parts(Queue& queue, const NormPartsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.entries != nullptr);
  FT_CHECK(args.out != nullptr && args.max_rows > 0 && args.eps >= 0);
  FT_CHECK(args.out != args.x || args.out_dtype == DType::kF32);
  FT_CHECK(args.num_parts > 0 && args.num_parts <= kMaxRowParts);
  for (int32_t i = 0; i < args.num_parts; ++i) {
    const RowPart& part = args.parts[i];
    FT_CHECK(part.count > 0 && part.begin >= 0 && part.group > 0 && part.entry >= 0);
    FT_CHECK(part.column >= 0 && part.column + int64_t{part.count} <= args.stride);
    FT_CHECK(part.entry + int64_t{part.last_group()} < args.num_entries);
  }
  queue.launch(args);
}

// It norms what it normed before where it runs again, which moves the same bytes.
template <>
struct Costs<NormPartsArgs> {
  static LiveRowsPlace place(const NormPartsArgs& a) { return {a.counts}; }
  static OpCost cost(const NormPartsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    int64_t weights = 0;
    for (int32_t i = 0; i < a.num_parts; ++i) {
      if (a.weights[i] != nullptr) weights += a.parts[i].count;
    }
    return {.weight_bytes = weights * kFloatBytes,
            .row_bytes = rows * (columns(a) * (kFloatBytes + size_of(a.out_dtype)) +
                                 a.num_entries * kFloatBytes)};
  }
  static std::string shape(const NormPartsArgs& a) { return std::to_string(columns(a)); }

 private:
  static int64_t columns(const NormPartsArgs& a) {
    int64_t all = 0;
    for (int32_t i = 0; i < a.num_parts; ++i) all += a.parts[i].count;
    return all;
  }
};

OpView norm_parts_view() { return counted_view<NormPartsArgs>(); }

}  // namespace foretoken
