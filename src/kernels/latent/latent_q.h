#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/latent/head_gemm.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Takes the queries of latent attention apart, for the live token rows. Head h of x[r] is
// [nope_dim | rope_dim] floats: the first part goes to `nope` as it is, to be multiplied into the
// latents' space (head_gemm); the second turns as RopeKvArgs says, with rotary_dim = rope_dim, and
// goes behind the kv_rank elements of its head in `q`, which stay as they are. With a query_scale
// both are multiplied by it. With `absorb` the product of the first part, rounded to dtype, with
// its head's matrix goes to these kv_rank elements, as head_gemm makes it; `nope` is then scratch.
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
  // Handle of Device::pack_weight, [num_heads * kv_rank, nope_dim] with unit_rows = kv_rank, not
  // quantised; kv_rank is then a multiple of kHeadColumns. Null: nothing is multiplied.
  const void* absorb = nullptr;
};

// The product with `absorb`, of what lies in `nope`.
inline HeadGemmArgs absorbing_product(const LatentQArgs& args) {
  return {.counts = args.counts,
          .x = args.nope,
          .weight = args.absorb,
          .y = args.q,
          .max_rows = args.max_rows,
          .num_heads = args.num_heads,
          .n = args.kv_rank,
          .k = args.nope_dim,
          .x_stride = args.nope_dim,
          .y_stride = args.kv_rank + args.rope_dim,
          .dtype = args.dtype};
}

void latent_q(Queue& queue, const LatentQArgs& args);

}  // namespace foretoken
