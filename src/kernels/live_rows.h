#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/row_kind.h"
#include "kernels/step_types.h"

namespace foretoken {

// How many of the rows that an op takes are live, at most max_rows, for the CPU, for CUDA and for
// what an op costs. Token rows are all taken: row_offset, the logits row that is row 0 of the op,
// is of logits rows alone.
FT_HD inline int32_t live_rows_of(const StepCounts& counts, RowKind kind, int32_t row_offset,
                                  int32_t max_rows) {
  const int32_t rows =
      kind == RowKind::kToken ? counts.num_rows : counts.num_logits_rows - row_offset;
  if (rows < 0) return 0;
  return rows < max_rows ? rows : max_rows;
}

}  // namespace foretoken
