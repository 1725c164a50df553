#pragma once
#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/sample_math.h"

// What becomes of the products of a gemm kernel. take_tiles gets a warp's m16n8k16 chains: TilesW x
// 16 rows of the weight from n on, TilesX x 8 rows of x from `row` on. take_column gets one row n
// of the weight for each lane and Rows rows of x from `row` on. `column` counts the warps along n.
namespace foretoken::cuda {

// y[row, n] = product + bias[n].
struct StoreOutput {
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
  __device__ static void store(const GemmArgs& args, int row, int n, float value) {
    if (args.bias != nullptr) value += args.bias[n];
    const int64_t at = int64_t{row} * args.n + n;
    if (args.out_dtype == DType::kBF16) {
      static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
    } else {
      static_cast<float*>(args.y)[at] = value;
    }
  }
};

// y[row, j] = activation(gate) * up of a weight packed as WeightOrder::kGateUp: the gate of a
// lane's tile of 16 rows is in its upper half, the up of the same column in its lower one.
struct StoreGated {
  int size;  // columns of y

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < TilesW; ++w) {
      const int column = n / 2 + w * (kTileN / 2) + lane / 4;
#pragma unroll
      for (int x = 0; x < TilesX; ++x) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int r = row + x * 8 + lane % 4 * 2 + i;
          if (r < live && column < size) store(args, r, column, c[w][x][i], c[w][x][i + 2]);
        }
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int,
                              const float (&sums)[Rows]) const {
    const int column = n / 16 * 8 + n % 8;
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float up = __shfl_xor_sync(0xffffffffu, sums[r], 8);
      if (n % 16 < 8 && row + r < live && column < size) {
        store(args, row + r, column, sums[r], up);
      }
    }
  }

 private:
  __device__ void store(const GemmArgs& args, int row, int column, float gate, float up) const {
    if (args.bias != nullptr) {
      gate += args.bias[column];
      up += args.bias[size + column];
    }
    const float value = activation_math::gated(args.activation, gate, up);
    const int64_t at = int64_t{row} * size + column;
    if (args.out_dtype == DType::kBF16) {
      static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
    } else {
      static_cast<float*>(args.y)[at] = value;
    }
  }
};

// Nothing is stored but each warp's best product of each row of x, as a key that orders like
// (product, lower n); 0: it has none.
struct KeepBest {
  const int32_t* id_map;  // [n] or null: rows of the weight with a negative entry do not count
  uint64_t* keys;         // [max_rows, num_columns]
  int num_columns;        // warps along n; those beyond hold nothing

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
  __device__ uint64_t key_of(const GemmArgs& args, int n, float product) const {
    if (n >= args.n || !(product > -INFINITY)) return 0;
    if (id_map != nullptr && id_map[n] < 0) return 0;
    return (uint64_t{sample_math::ordered_key(product)} << 32) | ~static_cast<uint32_t>(n);
  }

  __device__ void keep(int live, int row, int column, uint64_t key) const {
    if (row < live && column < num_columns) keys[int64_t{row} * num_columns + column] = key;
  }
};

// Calls launch(args, epilogue) with what gemm stores. The args of a gated product count the rows of
// the packed matrix in n.
template <class Launch>
void with_store(const GemmArgs& args, const Launch& launch) {
  if (args.gated == 0) {
    StoreOutput epilogue;
    return launch(args, epilogue);
  }
  GemmArgs all = args;
  all.n = static_cast<int32_t>(packed_rows(args.n, WeightOrder::kGateUp));
  StoreGated epilogue{args.n / 2};
  launch(all, epilogue);
}

// Tells the epilogue that a warp takes `width` rows of the weight.
inline void set_width(StoreOutput&, const GemmArgs&, int) {}
inline void set_width(StoreGated&, const GemmArgs&, int) {}
inline void set_width(KeepBest& best, const GemmArgs& args, int width) {
  best.num_columns = ceil_div(args.n, width);
}

}  // namespace foretoken::cuda
