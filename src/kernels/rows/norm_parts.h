#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/rows/row_part.h"
#include "kernels/step_types.h"

namespace foretoken {

// Norms of root mean squares of rows that ranks have together, of this rank's parts of the live
// token rows: with s = entries[r][entry + g], the sum of squares over the whole group g that
// measure_parts and a sum over the ranks have left there,
//   out[r][i] = x[r][i] / sqrt(s / group + eps) * weight
// for the parts' columns i alone. `out` may be x where it is of floats.
struct NormPartsArgs {
  static constexpr Op kOp = Op::kNormParts;
  const StepCounts* counts;
  const float* x;        // [max_rows, stride]
  const float* entries;  // [max_rows, num_entries]
  void* out;             // [max_rows, stride] of out_dtype
  RowPart parts[kMaxRowParts];
  const float* weights[kMaxRowParts];  // [count] of a part, or null: 1
  int32_t num_parts;
  int32_t max_rows;
  int32_t stride;
  int32_t num_entries;
  float eps;
  DType out_dtype;  // kF32 or kBF16
};

void norm_parts(Queue& queue, const NormPartsArgs& args);

}  // namespace foretoken
