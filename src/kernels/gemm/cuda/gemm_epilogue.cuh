#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/gemm_store.cuh"
#include "kernels/gemm/cuda/gemm_store_gated.cuh"
#include "kernels/gemm/gemm.h"
#include "kernels/sample_math.h"

// What becomes of the products of a gemm kernel. take_tiles gets a warp's m16n8k16 chains: TilesW x
// 16 rows of the weight from n on, TilesX x 8 rows of x from `row` on. take_column gets one row n
// of the weight for each lane and Rows rows of x from `row` on. take_rows gets a warpgroup's wgmma
// chains: 64 rows of x from `row` on, Half * 2 rows of the weight from n on. `column` counts the
// warps (the blocks) along n.
namespace foretoken::cuda {

// Nothing is stored but each warp's best product of each row of x, as a key that orders like
// (product, lower n); 0: it has none.
struct KeepBest {
  const int32_t* id_map;  // [n] or null: rows of the weight with a negative entry do not count
  uint64_t* keys;         // [max_rows, num_columns]
  int num_columns;        // warps along n; those beyond hold nothing

  template <int Half>
  __device__ void take_rows(const GemmArgs& args, int live, int row, int n, int column,
                            float (&c)[Half]) const {
    const int lane = threadIdx.x % 32;
    const int from = n + lane % 4 * 2;
    if (id_map != nullptr || n + Half * 2 > args.n) drop_others(args, from, c);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float product = -INFINITY;
      int place = 0;
#pragma unroll
      for (int j = 0; j < Half / 2; ++j) {
        const float other = c[j / 2 * 4 + i * 2 + j % 2];
        if (other > product) {  // the first of equal ones
          product = other;
          place = from + j / 2 * 8 + j % 2;
        }
      }
      uint64_t best = key_of(args, place, product);
      for (int offset = 1; offset < 4; offset *= 2) {
        best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
      }
      if (lane % 4 == 0) {
        keep(live, row + threadIdx.x % 128 / 32 * 16 + lane / 4 + i * 8, column, best);
      }
    }
  }

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int column,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int x = 0; x < TilesX; ++x) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint64_t best = 0;
#pragma unroll
        for (int w = 0; w < TilesW; ++w) {
          const int low = n + w * kTileN + lane / 4;
          best = max(best, key_of(args, low, c[w][x][i]));
          best = max(best, key_of(args, low + 8, c[w][x][i + 2]));
        }
        for (int offset = 4; offset < 32; offset *= 2) {
          best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
        }
        if (lane < 4) keep(live, row + x * 8 + lane * 2 + i, column, best);
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int column,
                              const float (&sums)[Rows]) const {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      uint64_t best = key_of(args, n, sums[r]);
      for (int offset = 1; offset < 32; offset *= 2) {
        best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
      }
      if (threadIdx.x % 32 == 0) keep(live, row + r, column, best);
    }
  }

 private:
  __device__ bool admits(const GemmArgs& args, int n) const {
    return n < args.n && (id_map == nullptr || id_map[n] >= 0);
  }

  template <int Half>
  __device__ void drop_others(const GemmArgs& args, int from, float (&c)[Half]) const {
#pragma unroll
    for (int j = 0; j < Half / 2; ++j) {
      if (admits(args, from + j / 2 * 8 + j % 2)) continue;
      c[j / 2 * 4 + j % 2] = -INFINITY;
      c[j / 2 * 4 + j % 2 + 2] = -INFINITY;
    }
  }

  __device__ uint64_t key_of(const GemmArgs& args, int n, float product) const {
    if (!(product > -INFINITY) || !admits(args, n)) return 0;
    return (uint64_t{sample_math::ordered_key(product)} << 32) | ~static_cast<uint32_t>(n);
  }

  __device__ void keep(int live, int row, int column, uint64_t key) const {
    if (row < live && column < num_columns) keys[int64_t{row} * num_columns + column] = key;
  }
};

// Calls launch(args, epilogue) with what gemm stores. The args of a gated product count the rows of
// the packed matrix in n.
template <class Launch>
auto with_store(const GemmArgs& args, const Launch& launch) {
  if (args.gated == 0) {
    StoreOutput epilogue{args.n};
    return launch(args, epilogue);
  }
  GemmArgs all = args;
  all.n = static_cast<int32_t>(packed_rows(args.n, WeightOrder::kGateUp));
  StoreGated epilogue{args.n / 2};
  return launch(all, epilogue);
}

// Tells the epilogue that a warp takes `width` rows of the weight.
inline void set_width(StoreOutput&, const GemmArgs&, int) {}
inline void set_width(StoreGated&, const GemmArgs&, int) {}
inline void set_width(KeepBest& best, const GemmArgs& args, int width) {
  best.num_columns = ceil_div(args.n, width);
}

}  // namespace foretoken::cuda
