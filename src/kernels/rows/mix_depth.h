#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxDepthBlocks = 64;

// Attention over depth (Kimi K3): of each live token row the mean of what it was behind earlier
// blocks of layers and of what it is now, weighed by how they meet a learned query:
//   residual += delta;  v = [blocks.., residual]
//   out = sum over j of softmax_j(weights . v_j / sqrt(mean(v_j^2) + eps)) v_j
// The order of the sums does not depend on the number of rows. `out` may be `residual`.
struct MixDepthArgs {
  static constexpr Op kOp = Op::kMixDepth;
  const StepCounts* counts;
  float* residual;       // [max_rows, size]
  const float* delta;    // [max_rows, size] or null
  const float* blocks;   // [num_blocks, block_rows, size]
  const float* weights;  // [size]
  float* out;            // [max_rows, size]
  int32_t num_blocks;    // 1 to kMaxDepthBlocks
  int32_t block_rows;    // rows from one block to the next, at least max_rows
  int32_t max_rows;
  int32_t size;
  float eps;
};

void mix_depth(Queue& queue, const MixDepthArgs& args);

}  // namespace foretoken
