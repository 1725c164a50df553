#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/rows/row_part.h"
#include "kernels/step_types.h"

namespace foretoken {

enum class PartMeasure : int32_t {
  kSquares,  // of each group the sum of squares, in its entry
  kMoments,  // of a part of one group the mean and the sum of squared distances from it, in two
  kHighest,  // of a part of one group the largest magnitude
};

// What a rank's part of the live token rows says for what only all parts know: norms, cuts and
// scales of whole rows. Entries that no part has become 0, so that the sum of the entries over the
// ranks (AllReduceArgs) has what each of them says. The order of the sums does not depend on the
// number of rows.
struct MeasurePartsArgs {
  static constexpr Op kOp = Op::kMeasureParts;
  const StepCounts* counts;
  const void* x;   // [max_rows, stride] of dtype
  float* entries;  // [max_rows, num_entries]
  RowPart parts[kMaxRowParts];
  int32_t num_parts;  // 0: another rank says all
  int32_t max_rows;
  int32_t stride;
  int32_t num_entries;
  PartMeasure measure;
  DType dtype;  // kF32, with kHighest also kBF16
};

void measure_parts(Queue& queue, const MeasurePartsArgs& args);

}  // namespace foretoken
