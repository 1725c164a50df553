#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What happens to the compressed rows of latent attention (DeepSeek-AI 2024, V2) behind their
// product, for the live token rows. x[r] = [q | latent | rope key], `q_size`, kv_rank and rope_dim
// floats.
// 1. latent becomes latent / sqrt(mean(latent^2) + norm_eps) * kv_norm;
// 2. the rope key turns as RopeKvArgs says, with rotary_dim = rope_dim;
// 3. both go to the cache, where it holds their slot, as one entry of kv.head_dim = kv_rank +
//    rope_dim elements; its first kv.value_dim = kv_rank elements are the value too;
// 4. with q_norm: q / sqrt(mean(q^2) + norm_eps) * q_norm, all q_size of it, goes to q_out.
struct LatentKvArgs {
  static constexpr Op kOp = Op::kLatentKv;
  const StepCounts* counts;
  const float* x;            // [max_rows, q_size + kv_rank + rope_dim]
  void* q_out;               // [max_rows, q_size] of kv.dtype; null without q_norm
  const int32_t* positions;  // [max_rows]
  const int32_t* kv_slot;    // [max_rows]
  const float* inv_freq;     // [rope_dim / 2]; null: no rotation
  const float* kv_norm;      // [kv_rank]
  const float* q_norm;       // [q_size] or null
  KvLayer kv;                // one head
  int32_t max_rows;
  int32_t q_size;
  int32_t kv_rank;
  int32_t rope_dim;
  float scaling;  // of cosines and sines
  float norm_eps;
  int32_t position_shift = 0;  // as of RopeKvArgs
};

void latent_kv(Queue& queue, const LatentKvArgs& args);

}  // namespace foretoken
