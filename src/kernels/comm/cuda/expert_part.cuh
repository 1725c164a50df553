#pragma once
#include <cstdint>

#include "kernels/activation_math.h"
#include "kernels/comm/expert_exchange.h"

namespace foretoken::cuda {

// What the sum of a returned row begins with, of 4 columns: `at` counts them over all rows. The
// same on every way that rows take, as the bits of the sum are.
__device__ inline float4 shared_part(const ReturnRowsArgs& args, int64_t at) {
  if (args.shared == nullptr) return float4{};
  const float scale = args.shared_gate != nullptr
                          ? activation_math::sigmoid(args.shared_gate[at * 4 / args.hidden])
                          : 1.0f;
  const float4 part = reinterpret_cast<const float4*>(args.shared)[at];
  return {__fmul_rn(part.x, scale), __fmul_rn(part.y, scale), __fmul_rn(part.z, scale),
          __fmul_rn(part.w, scale)};
}

}  // namespace foretoken::cuda
