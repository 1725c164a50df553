#pragma once
#include "kernels/gemm/cuda/gemm_store_gated.cuh"

namespace foretoken::cuda {

// y[row, n] = product + bias[n] in float, as StoreOutput has them, through shared memory as
// StoreGated: for wide tiles, whose stores out of registers would be as much code as there are
// values.
struct StoreBlock {
  int stride;  // floats from a row of y to the next

  static bool takes(const GemmArgs& args) {
    return args.out_dtype == DType::kF32 && args.add == 0 && args.n % 4 == 0 &&
           reinterpret_cast<uintptr_t>(args.y) % 16 == 0;
  }

  template <int Rows, int Half>
  __device__ static void put_block(const float (&c)[Half], float* shared) {
    StoreGated::put_block<Rows>(c, shared);
  }
  template <int Threads, int Half>
  __device__ void store_block(const GemmArgs& args, int live, int n, const float* shared) const {
    constexpr int kQuads = Half / 2;  // of a row, four of them together in a group
    float* const y = static_cast<float*>(args.y) + n;
    for (int i = static_cast<int>(threadIdx.x); i < live * kQuads; i += Threads) {
      const int row = i / kQuads, quad = i % kQuads, column = quad * 4;
      if (n + column >= args.n) continue;
      const float* const from = shared + row * StoreGated::block_stride(Half) +
                                quad / 4 * StoreGated::kGroupFloats + quad % 4 * 4;
      float4 sum = *reinterpret_cast<const float4*>(from);
      if (args.bias != nullptr) {
        const float* const bias = args.bias + n + column;
        sum = {sum.x + bias[0], sum.y + bias[1], sum.z + bias[2], sum.w + bias[3]};
      }
      *reinterpret_cast<float4*>(y + int64_t{row} * stride + column) = sum;
    }
  }
};

inline void set_width(StoreBlock&, const GemmArgs&, int) {}

}  // namespace foretoken::cuda
