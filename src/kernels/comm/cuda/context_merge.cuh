#pragma once
#include <cstdint>

#include "kernels/comm/context_exchange.h"
#include "kernels/cuda/common.cuh"
#include "kernels/sample_math.h"

// How what ranks saw of their positions is put together, the same on every way that it takes.
namespace foretoken::cuda {

// Place in the group of a rank of the communicator, or -1.
__host__ __device__ inline int place_in_group(const ContextRanks& ranks, int rank) {
  const int place = rank - ranks.first;
  return place >= 0 && place < ranks.size ? place : -1;
}

// Element d of what the ranks saw of one row and head; part(rank, i) is a float of a rank's state.
template <class Part>
__device__ inline float merged_element(const MergePartialsArgs& args, int head, int d,
                                       const Part& part) {
  float highest = -INFINITY, weights = 0, value = 0;
  for (int rank = 0; rank < args.ranks.size; ++rank) {
    const float own_weights = part(rank, args.value_size + 1);
    if (own_weights == 0) continue;
    const float own_highest = part(rank, args.value_size);
    const float most = fmaxf(highest, own_highest);
    const float keep = sample_math::exp_nonpositive(__fsub_rn(highest, most));
    const float take = sample_math::exp_nonpositive(__fsub_rn(own_highest, most));
    value = __fadd_rn(__fmul_rn(value, keep), __fmul_rn(part(rank, d), take));
    weights = __fadd_rn(__fmul_rn(weights, keep), __fmul_rn(own_weights, take));
    highest = most;
  }
  if (weights == 0) return 0;
  if (args.sinks != nullptr) {
    const float above = __fsub_rn(args.sinks[head], highest);
    weights = __fadd_rn(weights, above > 0 ? __fdiv_rn(1.0f, sample_math::exp_nonpositive(-above))
                                           : sample_math::exp_nonpositive(above));
  }
  return __fdiv_rn(value, weights);
}

__device__ inline void store_merged(const MergePartialsArgs& args, int64_t at, float value) {
  if (args.dtype == DType::kBF16) {
    static_cast<__nv_bfloat16*>(args.out)[at] = __float2bfloat16_rn(value);
  } else {
    static_cast<float*>(args.out)[at] = value;
  }
}

}  // namespace foretoken::cuda
