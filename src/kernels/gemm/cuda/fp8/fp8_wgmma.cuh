#pragma once
#include "kernels/cuda/wgmma.cuh"

// Hopper's products of E4M3 by E4M3. Its sums keep fewer bits than floats do, so that they are
// added up as floats after 128 k (multiply_unit).
namespace foretoken::cuda {

// c (+)= a * b of a warpgroup as of wgmma, of 32 k.
template <int N>
__device__ void wgmma_e4m3(float (&c)[N / 2], uint64_t a, uint64_t b, bool add);

#define FT_WGMMA_E4M3(n, a_at, b_at, add_at)                                                 \
  template <>                                                                                \
  __device__ inline void wgmma_e4m3<n>(float(&c)[n / 2], uint64_t a, uint64_t b, bool add) { \
    FT_WGMMA_SHARED(n, "k32.f32.e4m3.e4m3", "1, 1", a_at, b_at, add_at);                     \
  }

FT_WGMMA_E4M3(8, 4, 5, 6)
FT_WGMMA_E4M3(16, 8, 9, 10)
FT_WGMMA_E4M3(32, 16, 17, 18)
FT_WGMMA_E4M3(64, 32, 33, 34)
FT_WGMMA_E4M3(96, 48, 49, 50)
FT_WGMMA_E4M3(128, 64, 65, 66)
FT_WGMMA_E4M3(160, 80, 81, 82)
FT_WGMMA_E4M3(192, 96, 97, 98)
FT_WGMMA_E4M3(256, 128, 129, 130)

#undef FT_WGMMA_E4M3

// Starts c = a * b over 128 k: descriptors of operands in the 128-byte swizzle, a row 128 codes.
template <int N>
__device__ inline void start_unit(float (&c)[N / 2], uint64_t a, uint64_t b) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) wgmma_e4m3<N>(c, a + step * 2, b + step * 2, step > 0);
  wgmma_commit();
}

}  // namespace foretoken::cuda
