#pragma once
#include <cstdint>

namespace foretoken::cpu {

// A row of x, with delta added where it is given.
struct NormRow {
  const float* x;
  const float* delta;  // or null
  int size;
};

// out = row / sqrt(mean(row^2) + eps) * weight; uint16_t is bfloat16. The order of the sum depends
// on the size alone. weight null: out = row.
void write_normed(const NormRow& row, const float* weight, float eps, float* out);
void write_normed(const NormRow& row, const float* weight, float eps, uint16_t* out);

}  // namespace foretoken::cpu
