#pragma once
#include <type_traits>

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// The arithmetic of a row's norm, whose bits all kernels share.
__device__ inline float add_squares(float sum, float4 v) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
}
__device__ inline float norm_scale(float squares, int size, float eps) {
  return 1.0f / sqrtf(squares / static_cast<float>(size) + eps);
}
__device__ inline float4 normed(float4 v, float scale, float4 weight) {
  return {v.x * scale * weight.x, v.y * scale * weight.y, v.z * scale * weight.z,
          v.w * scale * weight.w};
}

// A row of floats spread over a block of Threads threads, Vectors groups of four each, for its root
// mean square norm. The order of the sum depends on Threads and Vectors, which follow from the
// length alone.
template <int Threads, int Vectors>
struct NormRow {
  static constexpr int kThreads = Threads;

  int size;  // a multiple of 4, at most 4 * Threads * Vectors
  float4 values[Vectors];

  // f(first element of the group, its values).
  template <class F>
  __device__ void for_each(const F& f) {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      const int at = (static_cast<int>(threadIdx.x) + j * Threads) * 4;
      if (at < size) f(at, values[j]);
    }
  }

  // Once a kernel.
  __device__ float scale(float eps) const {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      const int at = (static_cast<int>(threadIdx.x) + j * Threads) * 4;
      const float4 v = at < size ? values[j] : float4{};
      squares = add_squares(squares, v);
    }
    return norm_scale(block_sum<Threads>(squares), size, eps);
  }
};

// A norm's weights are constant: they are read while the op before still runs.
template <int Threads, int Vectors>
__device__ NormRow<Threads, Vectors> load_norm_weight(const float* weight, int size) {
  NormRow<Threads, Vectors> row{size, {}};
  if (weight == nullptr) return row;
  row.for_each([&](int at, float4& v) { v = *reinterpret_cast<const float4*>(weight + at); });
  return row;
}

__device__ inline float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ inline float4 load4(const __nv_bfloat16* from) {
  const uint2 bits = *reinterpret_cast<const uint2*>(from);
  return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
          __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u)};
}

__device__ inline float4 load4(const __half* from) {
  const uint2 bits = *reinterpret_cast<const uint2*>(from);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&bits.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&bits.y));
  return {low.x, low.y, high.x, high.y};
}

template <class T>
__device__ void store4(T* to, float4 v) {
  if constexpr (sizeof(T) == 2) {
    const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(v.x, v.y),
                                     __floats2bfloat162_rn(v.z, v.w)};
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
  } else {
    *reinterpret_cast<float4*>(to) = v;
  }
}

// out = values * scale * weight.
template <int Threads, int Vectors, class T>
__device__ void store_normed(NormRow<Threads, Vectors>& row, NormRow<Threads, Vectors>& weight,
                             float scale, T* out) {
#pragma unroll
  for (int j = 0; j < Vectors; ++j) {
    const int at = (static_cast<int>(threadIdx.x) + j * Threads) * 4;
    if (at >= row.size) continue;
    const float4 v = row.values[j], w = weight.values[j];
    store4(out + at, normed(v, scale, w));
  }
}

// Calls use(threads, vectors), both integral constants, for rows of `size` elements; false: they
// are no multiple of 4 or too long.
template <class Use>
bool with_norm_shape(int size, const Use& use) {
  const auto call = [&]<int Threads, int Vectors>() {
    use(std::integral_constant<int, Threads>(), std::integral_constant<int, Vectors>());
    return true;
  };
  if (size % 4 != 0 || size > 8192) return false;
  if (size <= 1024) return call.template operator()<256, 1>();
  if (size <= 2048) return call.template operator()<256, 2>();
  if (size <= 4096) return call.template operator()<512, 2>();
  return call.template operator()<512, 4>();
}

}  // namespace foretoken::cuda
