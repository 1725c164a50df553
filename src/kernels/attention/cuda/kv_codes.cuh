#pragma once
#include "base/float8.h"
#include "kernels/attention/code_scale.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/cuda/common.cuh"

// Entries of the KV cache as codes (they need no alignment).
namespace foretoken::cuda {

// What the bytes at `from` hold.
template <class T>
__device__ T bytes_as(const uint8_t* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <KvFormat Format>
__device__ float code_value(uint8_t code) {
  if constexpr (Format == KvFormat::kInt8) return static_cast<float>(static_cast<int8_t>(code));
  return e4m3_value(code);
}

// Element d of an entry: of kFp8 without the scale of its head. T: the type of the layer.
template <class T, KvFormat Format>
__device__ float coded_element(const KvLayer& kv, const uint8_t* entry, int d) {
  const int latents = kv.value_dim;
  const float code = d < latents || latents == 0 ? code_value<Format>(entry[d]) : 0.0f;
  if (latents == 0) {
    if (Format != KvFormat::kInt8) return code;
    return __fmul_rn(code, bytes_as<float>(entry + kv.head_dim));
  }
  if (d < latents) {
    const uint8_t* scales = entry + latent_scales_at(latents);
    const auto scale = bytes_as<float>(scales + d / kLatentGroup * sizeof(float));
    return to_float(from_float<T>(__fmul_rn(code, scale)));
  }
  return to_float(bytes_as<T>(entry + latent_plain_at(latents) + (d - latents) * sizeof(T)));
}

// The same of any format.
template <class T, KvFormat Format>
__device__ float entry_value(const KvLayer& kv, const uint8_t* entry, int d) {
  if constexpr (Format == KvFormat::kPlain) {
    return to_float(reinterpret_cast<const T*>(entry)[d]);
  } else {
    return coded_element<T, Format>(kv, entry, d);
  }
}

// The bits of the largest magnitude of x[first, end), compared as integers, so that no NaN is
// passed over; by a warp.
__device__ inline uint32_t highest_bits(const float* x, int first, int end) {
  uint32_t bits = 0;
  for (int i = first + static_cast<int>(threadIdx.x) % 32; i < end; i += 32) {
    bits = max(bits, __float_as_uint(x[i]) & 0x7fffffffu);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  return bits;
}

__device__ inline uint8_t int8_code(float x, float inverse) {
  return static_cast<uint8_t>(static_cast<int8_t>(__float2int_rn(__fmul_rn(x, inverse))));
}

// The codes of x[first, end), in shared memory, to `codes`, by a warp; returns their scale.
__device__ inline float store_code_group(KvFormat format, const float* x, int first, int end,
                                         uint8_t* codes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t bits = highest_bits(x, first, end);
  if (format == KvFormat::kInt8) {
    const CodeScale found = scale_of_highest(bits, 127.0f);
    for (int i = first + lane; i < end; i += 32) codes[i] = int8_code(x[i], found.inverse);
    return found.scale;
  }
  const float scale = fp8_group_scale(__uint_as_float(bits));
  for (int i = first + lane; i < end; i += 32) codes[i] = e4m3_code(__fdiv_rn(x[i], scale));
  return scale;
}

// The codes of `value_dim` latents in shared memory, and their scales behind them, by a whole block
// of `threads` threads; a warp for each group.
template <int threads>
__device__ void store_coded_latents(KvFormat format, const float* x, int value_dim,
                                    uint8_t* entry) {
  const int groups = ceil_div(value_dim, kLatentGroup);
  for (int group = static_cast<int>(threadIdx.x) / 32; group < groups; group += threads / 32) {
    const int first = group * kLatentGroup;
    const float scale =
        store_code_group(format, x, first, min(first + kLatentGroup, value_dim), entry);
    if (threadIdx.x % 32 > 0) continue;
    memcpy(entry + latent_scales_at(value_dim) + group * sizeof scale, &scale, sizeof scale);
  }
}

}  // namespace foretoken::cuda
