#pragma once
#include <cstdint>

namespace foretoken::cpu {

// A row of x, with delta_scale * delta added where it is given.
struct NormRow {
  const float* x;
  const float* delta;  // or null
  int size;
  float delta_scale = 1;
};

// What a norm multiplies by and adds.
struct NormWeights {
  const float* weight;  // null: the row stays as it is
  const float* bias;    // or null
};

// out = row / sqrt(mean(row^2) + eps) * weight; uint16_t is bfloat16. The order of the sum depends
// on the size alone. weight null: out = row.
void write_normed(const NormRow& row, const float* weight, float eps, float* out);
void write_normed(const NormRow& row, const float* weight, float eps, uint16_t* out);

// out = (row - mean) / sqrt(mean((row - mean)^2) + eps) * weight + bias, in the same way.
void write_layer_normed(const NormRow& row, const NormWeights& norm, float eps, float* out);
void write_layer_normed(const NormRow& row, const NormWeights& norm, float eps, uint16_t* out);

}  // namespace foretoken::cpu
