#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Norms groups of columns of the live token rows in place, such as the heads of the queries among
// queries, keys and values. Group g of row r is the `size` elements from x[r][column + g * size]:
//   y = x / sqrt(mean(x^2) + eps) * weight[g]                    or, where centred,
//   y = (x - m) / sqrt(mean((x - m)^2) + eps) * weight[g],  m = mean(x)
// The order of the sums does not depend on the number of rows.
struct NormColumnsArgs {
  static constexpr Op kOp = Op::kNormColumns;
  const StepCounts* counts;
  float* x;             // [max_rows, stride]
  const float* weight;  // [groups, size]; null: 1
  int32_t max_rows;
  int32_t stride;
  int32_t column;
  int32_t groups;
  int32_t size;
  float eps;
  int32_t centred = 0;
};

void norm_columns(Queue& queue, const NormColumnsArgs& args);

}  // namespace foretoken
