#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Takes the queries of latent attention apart, for the live token rows. Head h of x[r] is
// [nope_dim | rope_dim] floats: the first part goes to `nope` as it is, to be multiplied into the
// latents' space (head_gemm); the second turns as RopeKvArgs says, with rotary_dim = rope_dim, and
// goes behind the kv_rank elements of its head in `q`, which stay as they are. With a query_scale
// both are multiplied by it.
struct LatentQArgs {
  static constexpr Op kOp = Op::kLatentQ;
  const StepCounts* counts;
  const float* x;            // [max_rows, x_stride], heads first
  void* nope;                // [max_rows, num_heads, nope_dim] of dtype
  void* q;                   // [max_rows, num_heads, kv_rank + rope_dim] of dtype
  const int32_t* positions;  // [max_rows]
  const float* inv_freq;     // [rope_dim / 2]; null: no rotation
  int32_t x_stride;
  int32_t max_rows;
  int32_t num_heads;
  int32_t nope_dim;
  int32_t rope_dim;
  int32_t kv_rank;
  float scaling;
  DType dtype;
  int32_t position_shift = 0;
  QueryScale query_scale = {};
};

void latent_q(Queue& queue, const LatentQArgs& args);

}  // namespace foretoken
