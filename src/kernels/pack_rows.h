#pragma once
#include <cstdint>

#include "device/device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"

namespace foretoken {

// Rows first_row .. first_row + num_rows - 1 of a weight of Device::make_weight, from row-major
// `rows`. first_row is a multiple of Device::weight_slice_rows, and so is num_rows unless the rows
// are the last ones. Start-up only: on the CPU it allocates.
struct PackRowsArgs {
  static constexpr Op kOp = Op::kPackRows;
  void* weight;
  const void* rows;  // [num_rows, k] of the weight's type, in device or pinned memory
  // Device memory of the size of `rows`, which the op may fill on its way there; null where they
  // lie in device memory.
  void* scratch;
  int64_t first_row;
  int64_t num_rows;
  int64_t n;  // rows of the whole matrix
  int64_t k;
  DType dtype;  // kF32 or kBF16
  WeightOrder order;
};

void pack_rows(Queue& queue, const PackRowsArgs& args);

}  // namespace foretoken
