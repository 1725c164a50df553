#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/device.h"
#include "device/queue.h"
#include "kernels/op.h"

namespace foretoken {

// Rows first_row .. first_row + num_rows - 1, in packing order, of a weight of Device::make_weight.
// Packing order is that of the matrix; by kGateUp it is slice_rows / 2 gates, as many ups of the
// same columns, and so on, with fewer at the end. first_row is a multiple of slice_rows, and so is
// num_rows unless the rows are the last ones. Start-up only: on the CPU it allocates.
struct PackRowsArgs {
  static constexpr Op kOp = Op::kPackRows;
  void* weight = nullptr;
  // [num_rows, k] of the weight's type, or quantised rows (base/quantized_rows.h) in the forms that
  // it was made for, in device or pinned memory.
  const void* rows = nullptr;
  // Device memory of the size of `rows`, which the op may fill on its way there; null where they
  // lie in device memory.
  void* scratch = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t slice_rows = 0;     // Device::weight_slice_rows, or of the quantised weight
  DType dtype = DType::kF32;  // kF32 or kBF16
  WeightOrder order = WeightOrder::kPlain;
};

// The row of the matrix at `place` in packing order.
FT_HD inline int64_t row_in_packing_order(int64_t place, int64_t n, int64_t slice_rows,
                                          WeightOrder order) {
  if (order == WeightOrder::kPlain) return place;
  const int64_t half = slice_rows / 2;
  const int64_t first = place / slice_rows * half;
  const int64_t left = n / 2 - first;
  const int64_t side = half < left ? half : left;
  const int64_t at = place % slice_rows;
  return at < side ? first + at : n / 2 + first + at - side;
}

void pack_rows(Queue& queue, const PackRowsArgs& args);

}  // namespace foretoken
