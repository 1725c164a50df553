#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "kernels/rows/measure_parts.h"
#include "kernels/rows/norm_parts.h"
#include "model/layer/layer_rows.h"
#include "model/weights/sharding.h"

namespace foretoken {

// What ranks that have parts of rows tell each other of them: a few numbers of each row, of whose
// sum over the ranks every rank has the same bits. A runner of layers has one.
struct RankRows {
  const void* comm = nullptr;  // of Sharding
  int32_t rank = 0;
  int32_t size = 1;
  float* entries = nullptr;  // [max_rows, num_entries]
  int32_t num_entries = 0;
  int32_t max_rows = 0;

  // Makes room for so many entries of a row; before `take`.
  void fit(int32_t entries_of_row) { num_entries = std::max(num_entries, entries_of_row); }
  // Nothing where one rank has all.
  Status take(const ScratchSource& source, const Sharding& sharding);
};

// A part of a row that is normed by root mean squares over the whole row, and its weights.
struct NormedPart {
  RowPart part;
  const float* weights = nullptr;  // [part.count] or null
  bool is_told = true;             // false: another rank has the same part, and tells it
};

// Rows that such norms read and write; `out` may be x where it is of floats.
struct NormedRows {
  float* x;
  int32_t stride;
  float eps;
  void* out;
  DType dtype;
};

// Enqueues the norms of up to kMaxRowParts parts of the rows, whose squares are summed over
// rows.ranks.
void norm_over_ranks(const LayerRows& rows, std::span<const NormedPart> parts,
                     const NormedRows& of);

// Enqueues the largest magnitudes of rows [max_rows, columns] of dtype, of each rank's part:
// rows.ranks->entries then has rows.ranks->size of each row.
void tell_highest(const LayerRows& rows, const void* x, int32_t columns, DType dtype);

// The same of moments, two of each rank, of the first `columns` of rows that are `stride` wide.
void tell_moments(const LayerRows& rows, const float* x, int32_t columns, int32_t stride);

// Enqueues x = the sum of x [max_rows, columns] over the ranks.
void sum_over_ranks(const LayerRows& rows, float* x, int32_t columns);

}  // namespace foretoken
