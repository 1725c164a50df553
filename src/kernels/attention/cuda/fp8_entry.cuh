#pragma once
#include "base/float8.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// Element d of an entry of KvFormat::kFp8 (it needs no alignment), without the scale of its head.
// T: the type of the layer.
template <class T>
__device__ float fp8_element(const KvLayer& kv, const uint8_t* entry, int d) {
  const int latents = kv.value_dim;
  if (latents == 0) return e4m3_value(entry[d]);
  if (d < latents) {
    const uint8_t* scales = entry + latent_scales_at(latents);
    float scale;
    memcpy(&scale, scales + d / kLatentGroup * sizeof scale, sizeof scale);
    return to_float(from_float<T>(__fmul_rn(e4m3_value(entry[d]), scale)));
  }
  T element;
  memcpy(&element, entry + latent_plain_at(latents) + (d - latents) * sizeof element,
         sizeof element);
  return to_float(element);
}

// The codes of `value_dim` latents in shared memory, and their scales behind them, by a whole block
// of `threads` threads; a warp for each group.
template <int threads>
__device__ void store_fp8_latents(const float* x, int value_dim, uint8_t* entry) {
  const int lane = threadIdx.x % 32;
  const int groups = ceil_div(value_dim, kLatentGroup);
  for (int group = threadIdx.x / 32; group < groups; group += threads / 32) {
    const int first = group * kLatentGroup;
    const int end = min(first + kLatentGroup, value_dim);
    uint32_t bits = 0;  // as integers, so that no NaN is passed over
    for (int i = first + lane; i < end; i += 32) {
      bits = max(bits, __float_as_uint(x[i]) & 0x7fffffffu);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
    }
    const float scale = fp8_group_scale(__uint_as_float(bits));
    for (int i = first + lane; i < end; i += 32) entry[i] = e4m3_code(__fdiv_rn(x[i], scale));
    if (lane > 0) continue;
    memcpy(entry + latent_scales_at(value_dim) + group * sizeof scale, &scale, sizeof scale);
  }
}

}  // namespace foretoken::cuda
