#include "kernels/cuda/gemm_common.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kBlockK = 64;
constexpr int kTilesK = kBlockK / kTileK;

// A block computes RowsX rows of x times RowsW rows of the weight with WarpsX x WarpsW warps.
template <int RowsX_, int RowsW_, int WarpsX_, int WarpsW_, int Stages_>
struct TileShape {
  static constexpr int kRowsX = RowsX_;
  static constexpr int kRowsW = RowsW_;
  static constexpr int kWarpsX = WarpsX_;
  static constexpr int kWarpsW = WarpsW_;
  static constexpr int kStages = Stages_;
  static constexpr int kThreads = kWarpsX * kWarpsW * 32;
  static constexpr int kChunksX = RowsX_ * kBlockK / 8;
  static constexpr int kChunksW = RowsW_ * kBlockK / 8;
  static constexpr int kTilesX = RowsX_ / kWarpsX / 8;       // of a warp
  static constexpr int kTilesW = RowsW_ / kWarpsW / kTileN;   // of a warp
  static constexpr int kBytes = Stages_ * (kChunksX + kChunksW) * 16;
};

// Place of the 16-byte chunk c of x row r: neighbouring rows use opposite halves of the banks.
__device__ inline int x_chunk(int r, int c) { return r * (kBlockK / 8) + (c ^ ((r & 1) << 2)); }

// Chunks of x that do not start on 16 bytes (k not a multiple of 8) are put together by hand.
__device__ inline uint4 gather_chunk(const __nv_bfloat16* x, int64_t row_start, int k, int limit) {
  __nv_bfloat16 values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = k + i < limit ? x[row_start + k + i] : __float2bfloat16_rn(0.0f);
  }
  uint4 chunk;
  memcpy(&chunk, values, sizeof chunk);
  return chunk;
}

template <class Shape>
struct TileLoader {
  const GemmArgs& args;
  uint4* stages;
  int first_row;  // of x
  int first_n;
  int num_k_tiles;
  int num_n_tiles;

  __device__ uint4* x_of(int stage) const {
    return stages + stage % Shape::kStages * (Shape::kChunksX + Shape::kChunksW);
  }
  __device__ uint4* w_of(int stage) const { return x_of(stage) + Shape::kChunksX; }

  __device__ void load_weight(int stage) const {
    const auto* weight = static_cast<const uint4*>(args.weight);
    constexpr int kRowTileChunks = kTilesK * kTileChunks;
#pragma unroll
    for (int i = threadIdx.x; i < Shape::kChunksW; i += Shape::kThreads) {
      const int k_tile = stage * kTilesK + i % kRowTileChunks / kTileChunks;
      const int n_tile = min(first_n / kTileN + i / kRowTileChunks, num_n_tiles - 1);
      const bool valid = k_tile < num_k_tiles;
      const int64_t tile = int64_t{n_tile} * num_k_tiles + (valid ? k_tile : 0);
      copy16_async(w_of(stage) + i, weight + tile * kTileChunks + i % kTileChunks, valid);
    }
  }

  __device__ void load_x(int stage) const {
    const auto* x = static_cast<const __nv_bfloat16*>(args.x);
#pragma unroll
    for (int i = threadIdx.x; i < Shape::kChunksX; i += Shape::kThreads) {
      const int row = i / (kBlockK / 8);
      const int chunk = i % (kBlockK / 8);
      const int k = stage * kBlockK + chunk * 8;
      const int64_t start = int64_t{min(first_row + row, args.max_rows - 1)} * args.k;
      uint4* to = x_of(stage) + x_chunk(row, chunk);
      if (args.k % 8 == 0) {
        copy16_async(to, x + start + (k < args.k ? k : 0), k < args.k);
      } else {
        *to = gather_chunk(x, start, k, args.k);
      }
    }
  }
};

template <class Shape>
__device__ void multiply_stage(float (&c)[Shape::kTilesW][Shape::kTilesX][4], const uint4* x,
                               const uint4* w) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int row = warp % Shape::kWarpsX * Shape::kTilesX * 8 + lane / 4;
  const int n_tile = warp / Shape::kWarpsX * Shape::kTilesW;
#pragma unroll
  for (int kt = 0; kt < kTilesK; ++kt) {
    uint4 low[Shape::kTilesW];
    uint4 high[Shape::kTilesW];
#pragma unroll
    for (int i = 0; i < Shape::kTilesW; ++i) {
      const uint4* tile = w + ((n_tile + i) * kTilesK + kt) * kTileChunks;
      low[i] = tile[lane];
      high[i] = tile[lane + 32];
    }
#pragma unroll
    for (int j = 0; j < Shape::kTilesX; ++j) {
      const uint4 chunk = x[x_chunk(row + j * 8, kt * 4 + lane % 4)];
#pragma unroll
      for (int i = 0; i < Shape::kTilesW; ++i) multiply_block(c[i][j], low[i], high[i], chunk);
    }
  }
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) gemm_tiled_kernel(GemmArgs args) {
  extern __shared__ uint4 stages[];
  const int num_stages = ceil_div(args.k, kBlockK);
  const TileLoader<Shape> loader{args,
                                 stages,
                                 static_cast<int>(blockIdx.x) * Shape::kRowsX,
                                 static_cast<int>(blockIdx.y) * Shape::kRowsW,
                                 ceil_div(args.k, kTileK),
                                 ceil_div(args.n, kTileN)};
  // The weight is constant: its first part is fetched while the op before still runs.
  for (int stage = 0; stage < Shape::kStages - 1; ++stage) loader.load_weight(stage);
  wait_for_previous();
  let_next_start();
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  if (loader.first_row >= live) {
    wait_copies<0>();
    return;
  }
  for (int stage = 0; stage < Shape::kStages - 1; ++stage) {
    loader.load_x(stage);
    commit_copies();
  }
  float c[Shape::kTilesW][Shape::kTilesX][4] = {};
  for (int stage = 0; stage < num_stages; ++stage) {
    wait_copies<Shape::kStages - 2>();
    __syncthreads();
    loader.load_weight(stage + Shape::kStages - 1);
    loader.load_x(stage + Shape::kStages - 1);
    commit_copies();
    multiply_stage<Shape>(c, loader.x_of(stage), loader.w_of(stage));
  }
  wait_copies<0>();
  const int warp = threadIdx.x / 32;
  const int row = loader.first_row + warp % Shape::kWarpsX * Shape::kTilesX * 8;
  const int n = loader.first_n + warp / Shape::kWarpsX * Shape::kTilesW * kTileN;
#pragma unroll
  for (int i = 0; i < Shape::kTilesW; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kTilesX; ++j) {
      store_tile(args, live, row + j * 8, n + i * kTileN, c[i][j]);
    }
  }
}

template <class Shape>
void launch(const GemmArgs& args, cudaStream_t stream) {
  const auto kernel = gemm_tiled_kernel<Shape>;
  static const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
  if (raised != cudaSuccess) return;
  const dim3 grid(ceil_div(args.max_rows, Shape::kRowsX), ceil_div(args.n, Shape::kRowsW));
  launch_kernel(kernel, grid, Shape::kThreads, Shape::kBytes, stream, args);
}

using Rows32Narrow = TileShape<32, 32, 2, 2, 10>;
using Rows32Wide = TileShape<32, 64, 1, 4, 6>;
using Rows64Narrow = TileShape<64, 32, 2, 2, 8>;
using Rows64Wide = TileShape<64, 128, 2, 4, 4>;
using Rows128 = TileShape<128, 128, 2, 4, 3>;

}  // namespace

void launch_gemm_tiled(const GemmArgs& args, cudaStream_t stream) {
  const int num_sms = device_traits().num_sms;
  const auto blocks = [&](int rows, int columns) {
    return ceil_div(args.max_rows, rows) * ceil_div(args.n, columns);
  };
  if (args.max_rows <= 32) {
    blocks(32, 64) >= 2 * num_sms ? launch<Rows32Wide>(args, stream)
                                  : launch<Rows32Narrow>(args, stream);
  } else if (args.max_rows > 64 && blocks(128, 128) >= num_sms) {
    launch<Rows128>(args, stream);
  } else {
    blocks(64, 128) >= num_sms ? launch<Rows64Wide>(args, stream)
                               : launch<Rows64Narrow>(args, stream);
  }
}

}  // namespace foretoken::cuda
