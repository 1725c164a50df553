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

// Scales of one unit for a thread's part of a warpgroup's sums: 64 rows of the weight by Columns
// rows of x. ByUnit: the weight has scales of units.
template <int Columns, bool ByUnit>
struct UnitScales {
  float2 x[Columns / 8];  // of this lane's columns
  float w[2];             // of its two rows

  // From shared memory: those of all columns, and of the weight from this lane's first row on.
  __device__ void read_x(const float* of_x) {
    const auto* pairs = reinterpret_cast<const float2*>(of_x);
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j) x[j] = pairs[j * 4 + threadIdx.x % 4];
  }
  __device__ void read_w(const float* of_w) {
    w[0] = of_w[0];
    w[1] = of_w[8];
  }

  // sums += the unit's sums `part`, which are there. Returns bits of the last word of each read, by
  // which a caller can tell that they ended.
  __device__ uint32_t add(float (&sums)[Columns / 2], float (&part)[Columns / 2]) const {
    pin_registers(part);
#pragma unroll
    for (int i = 0; i < Columns / 2; ++i) {
      float scale = i % 2 == 0 ? x[i / 4].x : x[i / 4].y;
      if constexpr (ByUnit) scale = __fmul_rn(scale, w[i / 2 % 2]);
      sums[i] = fmaf(scale, part[i], sums[i]);
    }
    uint32_t bits = __float_as_uint(x[Columns / 8 - 1].y);
    if constexpr (ByUnit) bits |= __float_as_uint(w[0]) | __float_as_uint(w[1]);
    return bits;
  }
};

}  // namespace foretoken::cuda
