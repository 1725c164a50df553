#pragma once
#include <cstdint>

#include "device/dtype.h"

namespace foretoken {

// Rows in device memory that ops look up by their number, of which they know how many there are and
// how long each is. Halves may be those of a weight (Device::rows_of_weight), whose rows alternate:
// element j of row r, of n elements, is element (r / together * n + j) * together + r % together.
// Quantised rows of a weight are known to the device's ops alone.
struct RowTable {
  const void* data = nullptr;  // null: there is none
  DType dtype = DType::kF32;   // kF32, kBF16 or kF16
  int32_t together = 1;        // rows that alternate; 1: each lies by itself
  bool quantized = false;      // their numbers are rounded to `dtype`, kF32 or kBF16

  bool exists() const { return data != nullptr; }
  // Of so many rows of n elements of `dtype`.
  int64_t num_bytes(int64_t rows, int64_t n) const {
    return rows * n * static_cast<int64_t>(dtype_size(dtype));
  }
  // Whether rows of `out`, kF32 or kBF16, are made of it: of halves floats alone.
  bool makes(DType out) const {
    return exists() && together > 0 && (together == 1 || dtype == DType::kF16) &&
           (dtype == DType::kF16 ? out == DType::kF32 : dtype == out);
  }
};

}  // namespace foretoken
