#include "kernels/cuda/gemm_common.cuh"

namespace foretoken::cuda {
namespace {

// Few rows: the time is that of reading the weight once. Every warp is a block of its own that
// streams 16 weight rows through a ring in shared memory. Each lane copies exactly the bytes that
// it consumes itself, so that no barrier is needed and tens of kilobytes a multiprocessor are
// always under way.
constexpr int kBlocksPerStage = 4;  // of 32 k

// XTiles: groups of 8 rows of x.
template <int XTiles, int Stages>
struct SkinnyRing {
  static constexpr int kChunks = kTileChunks + XTiles * 32;  // in a block of 32 k
  static constexpr int kStageChunks = kBlocksPerStage * kChunks;
  static constexpr int kBytes = Stages * kStageChunks * 16;
};

template <int XTiles, int Stages>
__global__ void __launch_bounds__(32) gemm_skinny_kernel(GemmArgs args) {
  using Ring = SkinnyRing<XTiles, Stages>;
  extern __shared__ uint4 ring[];
  const int lane = threadIdx.x;
  const int num_blocks = ceil_div(args.k, kTileK);
  const int num_stages = ceil_div(num_blocks, kBlocksPerStage);
  const uint4* weight =
      static_cast<const uint4*>(args.weight) + int64_t{blockIdx.x} * num_blocks * kTileChunks;
  const auto slot = [&](int stage, int block) {
    return ring + stage % Stages * Ring::kStageChunks + block * Ring::kChunks + lane;
  };
  const auto load_weight = [&](int stage) {
#pragma unroll
    for (int b = 0; b < kBlocksPerStage; ++b) {
      const int block = stage * kBlocksPerStage + b;
      const bool valid = block < num_blocks;
      const uint4* from = weight + (valid ? block * kTileChunks : 0) + lane;
      copy16_async(slot(stage, b), from, valid);
      copy16_async(slot(stage, b) + 32, from + 32, valid);
    }
  };
  const auto* x = static_cast<const __nv_bfloat16*>(args.x);
  int64_t x_rows[XTiles];
#pragma unroll
  for (int j = 0; j < XTiles; ++j) {
    x_rows[j] = int64_t{min(j * 8 + lane / 4, args.max_rows - 1)} * args.k;
  }
  const auto load_x = [&](int stage) {
#pragma unroll
    for (int b = 0; b < kBlocksPerStage; ++b) {
      const int k = (stage * kBlocksPerStage + b) * kTileK + lane % 4 * 8;
#pragma unroll
      for (int j = 0; j < XTiles; ++j) {
        copy16_async_l1(slot(stage, b) + kTileChunks + j * 32, x + x_rows[j] + (k < args.k ? k : 0),
                        k < args.k);
      }
    }
  };

  // The weight is constant: its first part is fetched while the op before still runs.
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) load_weight(stage);
  wait_for_previous();
  let_next_start();
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) {
    if (live > 0) load_x(stage);
    commit_copies();
  }
  float c[XTiles][4] = {};
  for (int stage = 0; stage < num_stages && live > 0; ++stage) {
    wait_copies<Stages - 2>();
    // Blocks beyond k are zero: they change no bit and cost no branch between the products.
    uint4 low[kBlocksPerStage], high[kBlocksPerStage], x_chunks[kBlocksPerStage][XTiles];
#pragma unroll
    for (int b = 0; b < kBlocksPerStage; ++b) {
      low[b] = slot(stage, b)[0];
      high[b] = slot(stage, b)[32];
#pragma unroll
      for (int j = 0; j < XTiles; ++j) x_chunks[b][j] = slot(stage, b)[kTileChunks + j * 32];
    }
#pragma unroll
    for (int b = 0; b < kBlocksPerStage; ++b) {
#pragma unroll
      for (int j = 0; j < XTiles; ++j) multiply_block(c[j], low[b], high[b], x_chunks[b][j]);
    }
    load_weight(stage + Stages - 1);
    load_x(stage + Stages - 1);
    commit_copies();
  }
  wait_copies<0>();
#pragma unroll
  for (int j = 0; j < XTiles; ++j) store_tile(args, live, j * 8, blockIdx.x * kTileN, c[j]);
}

template <int XTiles, int Stages>
void launch(const GemmArgs& args, cudaStream_t stream) {
  constexpr int kBytes = SkinnyRing<XTiles, Stages>::kBytes;
  const auto kernel = gemm_skinny_kernel<XTiles, Stages>;
  static const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (raised != cudaSuccess) return;
  launch_kernel(kernel, ceil_div(args.n, kTileN), 32, kBytes, stream, args);
}

// The fewer warps a multiprocessor gets, the deeper each one's ring must be.
template <int XTiles>
void launch_for_width(const GemmArgs& args, cudaStream_t stream) {
  const int warps_per_sm = ceil_div(ceil_div(args.n, kTileN), device_traits().num_sms);
  if (warps_per_sm <= 2) {
    launch<XTiles, 12>(args, stream);
  } else if (warps_per_sm <= 4) {
    launch<XTiles, 8>(args, stream);
  } else {
    launch<XTiles, 4>(args, stream);
  }
}

}  // namespace

void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream) {
  if (args.max_rows <= 8) {
    launch_for_width<1>(args, stream);
  } else {
    launch_for_width<2>(args, stream);
  }
}

}  // namespace foretoken::cuda
