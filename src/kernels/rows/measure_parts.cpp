#include "kernels/rows/measure_parts.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void measure_parts(Queue& queue, const MeasurePartsArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.entries != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_parts >= 0 && args.num_parts <= kMaxRowParts);
  FT_CHECK(args.dtype == DType::kF32 || args.measure == PartMeasure::kHighest);
  const bool by_group = args.measure == PartMeasure::kSquares;
  const int32_t each = args.measure == PartMeasure::kMoments ? 2 : 1;
  for (int32_t i = 0; i < args.num_parts; ++i) {
    const RowPart& part = args.parts[i];
    FT_CHECK(part.count > 0 && part.begin >= 0 && part.group > 0 && part.entry >= 0);
    FT_CHECK(part.column >= 0 && part.column + int64_t{part.count} <= args.stride);
    FT_CHECK(by_group || part.first_group() == part.last_group());
    FT_CHECK(part.entry + (part.last_group() + int64_t{1}) * each <= args.num_entries);
  }
  queue.launch(args);
}

template <>
struct Costs<MeasurePartsArgs> {
  static LiveRowsPlace place(const MeasurePartsArgs& a) { return {a.counts}; }
  static OpCost cost(const MeasurePartsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * (columns(a) * size_of(a.dtype) + a.num_entries * kFloatBytes)};
  }
  static std::string shape(const MeasurePartsArgs& a) { return std::to_string(columns(a)); }

 private:
  static int64_t columns(const MeasurePartsArgs& a) {
    int64_t all = 0;
    for (int32_t i = 0; i < a.num_parts; ++i) all += a.parts[i].count;
    return all;
  }
};

OpView measure_parts_view() { return counted_view<MeasurePartsArgs>(); }

}  // namespace foretoken
