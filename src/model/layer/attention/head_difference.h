#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// What differential attention makes of the heads that lie side by side (GqaSpec::lambda_init): of
// each two the first minus lambda times the second, normed by root mean squares and times
// 1 - lambda_init. The difference is a product with one small matrix [1 | -lambda] for all pairs,
// so that devices need no op of its own.
struct HeadDifference {
  int32_t pairs = 0;  // of the rank's heads
  int32_t size = 0;   // of a head
  float eps = 0;
  PackedWeight matrix;          // [pairs * size, 2 * size]
  const float* norm = nullptr;  // [pairs, size]

  // Buffers that attention is done with.
  struct Scratch {
    void* differences;  // [max_rows, pairs * size] act
    float* normed;      // the same, in float
  };

  // Loads lambda_q1 and so on, whose names begin with `base`; `part` is the rank's. Unsupported
  // where ranks would divide a pair.
  Status load(PartLoader& loader, const std::string& base, const GqaSpec& part);
  // Enqueues them in place: attended [max_rows, 2 * pairs * size] becomes [max_rows, pairs * size].
  void take(const LayerRows& rows, DType dtype, void* attended, const Scratch& scratch) const;

  // Numbers that loading makes.
  static double num_weights(const GqaSpec& spec);
};

}  // namespace foretoken
