#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// Four columns at a time of rows whose parts lie on ranks that may have fewer columns than others,
// and whose beginnings need not lie on 16 bytes.
namespace foretoken::cuda {

// `value` goes to columns [col, col + 4) of a row that has `count`.
__device__ inline void copy_columns(const float4& value, float* row, int col, int count) {
  if (col + 4 <= count && (reinterpret_cast<uintptr_t>(row + col) & 15) == 0) {
    *reinterpret_cast<float4*>(row + col) = value;
    return;
  }
  const float values[4] = {value.x, value.y, value.z, value.w};
  for (int i = 0; i < 4; ++i) {
    if (col + i < count) row[col + i] = values[i];
  }
}

// Those columns; what the row does not have is 0.
__device__ inline float4 read_columns(const float* row, int col, int count) {
  if (col + 4 <= count && (reinterpret_cast<uintptr_t>(row + col) & 15) == 0) {
    return *reinterpret_cast<const float4*>(row + col);
  }
  float values[4] = {};
  for (int i = 0; i < 4; ++i) {
    if (col + i < count) values[i] = row[col + i];
  }
  return {values[0], values[1], values[2], values[3]};
}

}  // namespace foretoken::cuda
