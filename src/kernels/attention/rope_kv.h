#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Sharpens the attention of late positions (Llama 4, Ministral 3); beta 0: not at all.
struct QueryScale {
  float beta = 0;
  float period = 1;
  float offset = 0;
  bool operator==(const QueryScale&) const = default;
};

// What happens to q, k and v between their product and attention, for the live rows.
// qkv[r] = [q heads | k heads | v heads].
// 0. With a clip c: all of them are kept within [-c, c].
// 1. With q_norm or k_norm: each head of q or k becomes x / sqrt(mean(x^2) + norm_eps) * weight;
//    with norm_after the weights multiply behind step 2.
// 2. Rotary embedding (Su et al. 2021, the half-split layout of Hugging Face) of the first
//    rotary_dim elements of each head of q and k:
//   angle = position * inv_freq[i] in float; (a, b) = (x[i], x[i + rotary_dim / 2]) becomes
//   (a cos - b sin, b cos + a sin), cos and sin times `scaling`.
// 3. With a query_scale, q times 1 + beta * log(1 + floor((position + offset) / period)).
// 4. q goes to q_out, k and v to the cache, in its format, where it holds their slot.
struct RopeKvArgs {
  static constexpr Op kOp = Op::kRopeKv;
  const StepCounts* counts;
  const float* qkv;          // [max_rows, (num_heads + 2 num_kv_heads) * head_dim]
  void* q_out;               // [max_rows, num_heads * head_dim] of kv.dtype
  const int32_t* positions;  // [max_rows]
  const int32_t* kv_slot;    // [max_rows]
  const float* inv_freq;     // [rotary_dim / 2]; null: no rotation
  KvLayer kv;
  int32_t max_rows;
  int32_t num_heads;
  int32_t rotary_dim;             // <= head_dim; the rest passes unrotated; 0: no rotation
  float scaling;                  // 1 except for yarn and longrope
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float norm_eps = 0;
  int32_t position_shift =
      0;           // the angle is of position + shift, at least 0; the KV slot is not moved
  float clip = 0;  // 0: none
  int32_t norm_after = 0;
  QueryScale query_scale = {};
};

void rope_kv(Queue& queue, const RopeKvArgs& args);

}  // namespace foretoken
