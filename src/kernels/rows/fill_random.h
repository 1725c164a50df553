#pragma once
#include <cstdint>
#include <string_view>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"

namespace foretoken {

// to[i] = element first + i of the random tensor (kernels/random_weight.h), rounded to `dtype`.
// Start-up only.
struct FillRandomArgs {
  static constexpr Op kOp = Op::kFillRandom;
  void* to;  // [count] of `dtype`
  int64_t first;
  int64_t count;
  uint64_t seed;
  float scale;
  DType dtype;  // kF32 or kBF16
};

void fill_random(Queue& queue, const FillRandomArgs& args);

// The seed of the random tensor of that name.
uint64_t random_weight_seed(std::string_view name);
// The scale for which its elements have this standard deviation.
float random_weight_scale(float deviation);

}  // namespace foretoken
