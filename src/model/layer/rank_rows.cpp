#include "model/layer/rank_rows.h"

#include "base/check.h"
#include "kernels/comm/collectives.h"

namespace foretoken {
namespace {

void measure(const LayerRows& rows, MeasurePartsArgs args) {
  const RankRows& ranks = *rows.ranks;
  FT_CHECK(rows.max_rows <= ranks.max_rows);
  args.counts = rows.counts;
  args.entries = ranks.entries;
  args.max_rows = rows.max_rows;
  args.num_entries = ranks.num_entries;
  measure_parts(rows.queue, args);
  sum_over_ranks(rows, ranks.entries, ranks.num_entries);
}

}  // namespace

Status RankRows::take(const ScratchSource& source, const Sharding& sharding) {
  if (!sharding.is_cut()) return {};
  comm = sharding.comm;
  rank = sharding.rank;
  size = sharding.size;
  max_rows = source.max_rows;
  fit(2 * size);
  FT_ASSIGN_OR_RETURN(entries, source.floats(num_entries));
  return {};
}

void sum_over_ranks(const LayerRows& rows, float* x, int32_t columns) {
  FT_CHECK(rows.ranks != nullptr);
  all_reduce(rows.queue, {.comm = rows.ranks->comm,
                          .counts = rows.counts,
                          .x = x,
                          .row_kind = RowKind::kToken,
                          .row_offset = 0,
                          .max_rows = rows.max_rows,
                          .cols = columns});
}

void norm_over_ranks(const LayerRows& rows, std::span<const NormedPart> parts,
                     const NormedRows& of) {
  FT_CHECK(rows.ranks != nullptr && !parts.empty() && parts.size() <= kMaxRowParts);
  MeasurePartsArgs measured{};
  measured.x = of.x;
  measured.stride = of.stride;
  measured.measure = PartMeasure::kSquares;
  measured.dtype = DType::kF32;
  NormPartsArgs normed{};
  for (const NormedPart& part : parts) {
    if (part.is_told) measured.parts[measured.num_parts++] = part.part;
    normed.weights[normed.num_parts] = part.weights;
    normed.parts[normed.num_parts++] = part.part;
  }
  measure(rows, measured);
  normed.counts = rows.counts;
  normed.x = of.x;
  normed.entries = rows.ranks->entries;
  normed.out = of.out;
  normed.max_rows = rows.max_rows;
  normed.stride = of.stride;
  normed.num_entries = rows.ranks->num_entries;
  normed.eps = of.eps;
  normed.out_dtype = of.dtype;
  norm_parts(rows.queue, normed);
}

void tell_highest(const LayerRows& rows, const void* x, int32_t columns, DType dtype) {
  FT_CHECK(rows.ranks != nullptr);
  MeasurePartsArgs args{};
  args.x = x;
  args.parts[0] = {0, columns, 0, columns, rows.ranks->rank};
  args.num_parts = 1;
  args.stride = columns;
  args.measure = PartMeasure::kHighest;
  args.dtype = dtype;
  measure(rows, args);
}

void tell_moments(const LayerRows& rows, const float* x, int32_t columns, int32_t stride) {
  FT_CHECK(rows.ranks != nullptr);
  MeasurePartsArgs args{};
  args.x = x;
  args.parts[0] = {0, columns, 0, columns, 2 * rows.ranks->rank};
  args.num_parts = 1;
  args.stride = stride;
  args.measure = PartMeasure::kMoments;
  args.dtype = DType::kF32;
  measure(rows, args);
}

}  // namespace foretoken
