#pragma once
#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/gemm.h"

// How a gemm kernel stores its products as they are; gemm_epilogue.cuh says what a kernel calls.
namespace foretoken::cuda {

// Lanes 4 g .. 4 g + 3 hold a 4 x 4 matrix, a row each; afterwards a column each.
__device__ inline void transpose_quad(uint32_t (&words)[4]) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (threadIdx.x & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) != 0) continue;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | bit], bit);
      (upper ? words[i] : words[i | bit]) = got;
    }
  }
}

// y[row, n] = product + bias[n], or added to it. y may be some columns of wider rows: it begins at
// a multiple of 8 of them, and its own columns are as many, or those up to their end.
struct StoreOutput {
  int stride;  // elements from a row of y to the next

  template <int Half>
  __device__ static void add_bias(const GemmArgs& args, int n, float (&c)[Half]) {
#pragma unroll
    for (int j = 0; j < Half / 4; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int from = n + j * 8 + threadIdx.x % 4 * 2 + i;
        const float bias = from < args.n ? args.bias[from] : 0.0f;
        c[j * 4 + i] += bias;
        c[j * 4 + i + 2] += bias;
      }
    }
  }

  template <int Half>
  __device__ void take_rows(const GemmArgs& args, int live, int row, int n, int,
                            float (&c)[Half]) const {
    const int lane = threadIdx.x % 32;
    const int low = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
    if (low - lane / 4 >= live) return;
    if (args.bias != nullptr) add_bias(args, n, c);
    constexpr int kGroups = Half / 4;  // of 8 columns
    const bool bf16 = args.out_dtype == DType::kBF16;
    if (!bf16 && stride % 2 == 0) return store_floats(args, live, low, n + lane % 4 * 2, c);
#pragma unroll
    for (int j = 0; j < kGroups; j += 4) {
      if (bf16 && stride % 8 == 0 && j + 4 <= kGroups) {
        for (int i = 0; i < 2; ++i) {
          store_groups(args, live, low + i * 8, n + j * 8, c + j * 4 + i * 2);
        }
      } else {
        store_singly(args, live, low, n + lane % 4 * 2, c, j);
      }
    }
  }

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < TilesW; ++w) {
#pragma unroll
      for (int x = 0; x < TilesX; ++x) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = row + x * 8 + lane % 4 * 2 + i % 2;
          const int to = n + w * kTileN + lane / 4 + i / 2 * 8;
          if (r < live && to < args.n) store(args, r, to, c[w][x][i]);
        }
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int,
                              const float (&sums)[Rows]) const {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      if (row + r < live && n < args.n) store(args, row + r, n, sums[r]);
    }
  }

 private:
  // Rows row and row + 8; n: this lane's first column.
  template <int Half>
  __device__ void store_floats(const GemmArgs& args, int live, int row, int n,
                               const float (&c)[Half]) const {
    constexpr int kGroups = Half / 4;               // of 8 columns
    constexpr int kAtOnce = std::min(16, kGroups);  // as registers have room for
#pragma unroll
    for (int j = 0; j < kGroups; j += kAtOnce) {
      store_floats<kAtOnce>(args, live, row, n, c, j);
    }
  }

  // Up to Groups groups from `group` on. All loads go first: none may overtake a store.
  template <int Groups, int Half>
  __device__ void store_floats(const GemmArgs& args, int live, int row, int n,
                               const float (&c)[Half], int group) const {
    const auto place = [&](int i) {  // i: group and row
      const int64_t r = row + i % 2 * 8;
      const int to = n + (group + i / 2) * 8;
      const bool valid = group + i / 2 < Half / 4 && r < live && to < args.n;
      return valid ? reinterpret_cast<float2*>(static_cast<float*>(args.y) + r * stride + to)
                   : nullptr;
    };
    float2 sums[2 * Groups] = {};
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
      const float2* from = place(i);
      if (args.add != 0 && from != nullptr) sums[i] = *from;
    }
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
      float2* to = place(i);
      if (to == nullptr) continue;
      const float2 products{c[(group + i / 2) * 4 + i % 2 * 2],
                            c[(group + i / 2) * 4 + i % 2 * 2 + 1]};
      *to = args.add != 0 ? float2{sums[i].x + products.x, sums[i].y + products.y} : products;
    }
  }

  template <int Half>
  __device__ void store_singly(const GemmArgs& args, int live, int row, int n,
                               const float (&c)[Half], int group) const {
#pragma unroll
    for (int i = group * 4; i < group * 4 + 16; ++i) {
      if (i >= Half) continue;
      const int r = row + i % 4 / 2 * 8;
      const int to = n + i / 4 * 8 + i % 2;
      if (r < live && to < args.n) put(args, r, to, c[i]);
    }
  }

  // Four groups of 8 columns of one row: 16 bytes a lane.
  __device__ void store_groups(const GemmArgs& args, int live, int row, int n,
                               const float* c) const {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      words[j] = pack_bf16(c[j * 4], c[j * 4 + 1]);
    }
    transpose_quad(words);
    const int to = n + static_cast<int>(threadIdx.x) % 4 * 8;
    if (row >= live || to >= args.n) return;
    *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(args.y) + int64_t{row} * stride + to) =
        uint4{words[0], words[1], words[2], words[3]};
  }

  __device__ void store(const GemmArgs& args, int row, int n, float value) const {
    if (args.bias != nullptr) value += args.bias[n];
    put(args, row, n, value);
  }

  __device__ void put(const GemmArgs& args, int row, int n, float value) const {
    const int64_t at = int64_t{row} * stride + n;
    if (args.out_dtype == DType::kBF16) {
      static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
    } else {
      float& y = static_cast<float*>(args.y)[at];
      y = args.add != 0 ? y + value : value;
    }
  }
};

}  // namespace foretoken::cuda
