#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Logits of an output matrix whose ids lie in clusters of equal size, of which each row looks at
// the `top` ones with the highest scores alone, ties to the lowest: out[i][id] = x[i] . table[id]
// for the ids of these clusters, -inf elsewhere, for the live logits rows. Sums in float, whose
// order is one for every row.
struct ClusterLogitsArgs {
  static constexpr Op kOp = Op::kClusterLogits;
  const StepCounts* counts;
  const void* x;        // [max_rows, k] of dtype
  const float* scores;  // [max_rows, clusters]
  const void* table;    // [vocab, k] of dtype
  const int32_t* ids;   // [clusters, each], each id at most once; -1: none
  float* out;           // [max_rows, vocab]
  int32_t row_offset;   // logits row of row 0
  int32_t max_rows;
  int32_t clusters;  // at most kMaxClusters
  int32_t each;
  int32_t top;  // 1 .. clusters
  int32_t k;
  int32_t vocab;
  DType dtype;  // kF32 or kBF16

  static constexpr int kMaxClusters = 8192;
};

void cluster_logits(Queue& queue, const ClusterLogitsArgs& args);

}  // namespace foretoken
