#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What becomes of the rows of an indexer (DeepSeek-AI 2025, V3.2) behind their products, for the
// live token rows.
// 1. key becomes (key - mean) / sqrt(variance + norm_eps) * norm_weight + norm_bias; or, without a
//    norm_bias, key / sqrt(mean(key^2) + norm_eps) * norm_weight, and with query_norm each head of
//    the queries alike (MiniMax M3);
// 2. of it and of each head of the queries the first rope_dim elements turn as RopeKvArgs says,
//    with rotary_dim = rope_dim;
// 3. the key goes to the entry of the row's KV slot in `keys`, the queries to q_out.
struct IndexRowsArgs {
  static constexpr Op kOp = Op::kIndexRows;
  const StepCounts* counts;
  const float* key;          // [max_rows, head_dim]
  const float* queries;      // [max_rows, num_heads * head_dim]
  void* q_out;               // [max_rows, num_heads * head_dim] of dtype
  const int32_t* positions;  // [max_rows]
  const int32_t* kv_slot;    // [max_rows]
  const float* inv_freq;     // [rope_dim / 2]; null: no rotation
  const float* norm_weight;  // [head_dim]
  const float* norm_bias;    // [head_dim] or null
  void* keys;                // [num_blocks, block_size, head_dim] of dtype
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;  // at most kMaxIndexDim
  int32_t rope_dim;
  float scaling;  // of cosines and sines
  float norm_eps;
  DType dtype;                        // kF32 or kBF16
  int32_t position_shift = 0;         // as of RopeKvArgs
  const float* query_norm = nullptr;  // [head_dim] or null; without norm_bias
  int32_t stride = 0;  // of the rows of key and of queries in floats; 0: as wide as they are
};

inline constexpr int kMaxIndexDim = 256;

FT_HD inline const float* index_key(const IndexRowsArgs& a, int64_t row) {
  return a.key + row * (a.stride > 0 ? a.stride : a.head_dim);
}
FT_HD inline const float* index_queries(const IndexRowsArgs& a, int64_t row) {
  return a.queries + row * (a.stride > 0 ? a.stride : a.num_heads * a.head_dim);
}

void index_rows(Queue& queue, const IndexRowsArgs& args);

}  // namespace foretoken
