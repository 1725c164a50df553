#include "kernels/cuda/gemm_common.cuh"

namespace foretoken::cuda {
namespace {

// Few rows: the time is that of reading the weight once. Every warp is a block of its own that
// streams WTiles x 16 weight rows through a ring in shared memory. Each lane copies exactly the
// bytes that it consumes itself, so that no barrier is needed and tens of kilobytes a
// multiprocessor are always under way.
constexpr int kBlocksPerStage = 4;  // of 32 k

// XTiles: groups of 8 rows of x.
template <int WTiles, int XTiles>
struct Fragments {
  uint4 low[kBlocksPerStage][WTiles];
  uint4 high[kBlocksPerStage][WTiles];
  uint4 x[kBlocksPerStage][XTiles];

  // Blocks beyond k are zero: they change no bit and cost no branch between the products.
  __device__ void multiply(float (&c)[WTiles][XTiles][4], int b) const {
#pragma unroll
    for (int w = 0; w < WTiles; ++w) {
#pragma unroll
      for (int j = 0; j < XTiles; ++j) {
        multiply_block(c[w][j], low[b][w], high[b][w], x[b][j]);
      }
    }
  }
};

template <int WTiles, int XTiles, int Stages>
struct Ring {
  static constexpr int kChunks = WTiles * kTileChunks + XTiles * 32;  // in a block of 32 k
  static constexpr int kStageChunks = kBlocksPerStage * kChunks;
  static constexpr int kBytes = Stages * kStageChunks * 16;

  uint4* chunks;  // of this lane
  const uint4* weight;
  const __nv_bfloat16* x;
  int64_t x_rows[XTiles];
  int num_blocks;
  int k;

  __device__ uint4* slot(int stage, int block) const {
    return chunks + stage % Stages * kStageChunks + block * kChunks;
  }

  __device__ void load_weight(int stage, int b) const {
    const int block = stage * kBlocksPerStage + b;
    const bool valid = block < num_blocks;
#pragma unroll
    for (int w = 0; w < WTiles; ++w) {
      const uint4* from = weight + ((valid ? block : 0) + w * num_blocks) * kTileChunks;
      copy16_async(slot(stage, b) + w * kTileChunks, from, valid);
      copy16_async(slot(stage, b) + w * kTileChunks + 32, from + 32, valid);
    }
  }

  __device__ void load_x(int stage, int b) const {
    const int column = (stage * kBlocksPerStage + b) * kTileK + threadIdx.x % 4 * 8;
    const bool valid = column < k;
#pragma unroll
    for (int j = 0; j < XTiles; ++j) {
      copy16_async_l1(slot(stage, b) + WTiles * kTileChunks + j * 32,
                      x + x_rows[j] + (valid ? column : 0), valid);
    }
  }

  __device__ void read(Fragments<WTiles, XTiles>& to, int stage, int b) const {
#pragma unroll
    for (int w = 0; w < WTiles; ++w) {
      to.low[b][w] = slot(stage, b)[w * kTileChunks];
      to.high[b][w] = slot(stage, b)[w * kTileChunks + 32];
    }
#pragma unroll
    for (int j = 0; j < XTiles; ++j) {
      to.x[b][j] = slot(stage, b)[WTiles * kTileChunks + j * 32];
    }
  }
};

template <int WTiles, int XTiles, int Stages, class Epilogue>
__global__ void __launch_bounds__(32) gemm_skinny_kernel(GemmArgs args, Epilogue epilogue) {
  extern __shared__ uint4 shared[];
  const int lane = threadIdx.x;
  Ring<WTiles, XTiles, Stages> ring;
  ring.chunks = shared + lane;
  ring.num_blocks = ceil_div(args.k, kTileK);
  ring.k = args.k;
  // A last tile that the weight does not have repeats the one before; nothing of it is stored.
  const int first_tile =
      min(static_cast<int>(blockIdx.x) * WTiles, max(ceil_div(args.n, kTileN) - WTiles, 0));
  ring.weight = static_cast<const uint4*>(args.weight) +
                int64_t{first_tile} * ring.num_blocks * kTileChunks + lane;
  ring.x = static_cast<const __nv_bfloat16*>(args.x);
#pragma unroll
  for (int j = 0; j < XTiles; ++j) {
    ring.x_rows[j] = int64_t{min(j * 8 + lane / 4, args.max_rows - 1)} * args.k;
  }
  // The weight is constant: its first part is fetched while the op before still runs.
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) {
    for (int b = 0; b < kBlocksPerStage; ++b) ring.load_weight(stage, b);
  }
  wait_for_previous();
  let_next_start();
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  if (live == 0) {
    wait_copies<0>();
    return;
  }
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) {
    for (int b = 0; b < kBlocksPerStage; ++b) ring.load_x(stage, b);
    commit_copies();
  }
  float c[WTiles][XTiles][4] = {};
  Fragments<WTiles, XTiles> now;
  Fragments<WTiles, XTiles> next;
  wait_copies<Stages - 2>();
#pragma unroll
  for (int b = 0; b < kBlocksPerStage; ++b) ring.read(now, 0, b);
  const int num_stages = ceil_div(ring.num_blocks, kBlocksPerStage);
#pragma unroll 2
  for (int stage = 0; stage < num_stages; ++stage) {
    // The copies go to the place of stage - 1, which was read into registers before its products.
    // They and the reads are issued between the products, each of which waits for the one before.
    wait_copies<Stages - 3>();
#pragma unroll
    for (int b = 0; b < kBlocksPerStage; ++b) {
      now.multiply(c, b);
      ring.load_weight(stage + Stages - 1, b);
      ring.load_x(stage + Stages - 1, b);
      ring.read(next, stage + 1, b);
    }
    commit_copies();
    now = next;
  }
  wait_copies<0>();
  epilogue.take_tiles(args, live, 0, first_tile * kTileN, static_cast<int>(blockIdx.x), c);
}

template <int WTiles, int XTiles, int Stages, class Epilogue>
void launch(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  constexpr int kBytes = Ring<WTiles, XTiles, Stages>::kBytes;
  const auto kernel = gemm_skinny_kernel<WTiles, XTiles, Stages, Epilogue>;
  static const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (raised != cudaSuccess) return;
  set_width(epilogue, args, kTileN * WTiles);
  launch_kernel(kernel, ceil_div(args.n, kTileN * WTiles), 32, kBytes, stream, args, epilogue);
}

// The fewer warps a multiprocessor gets, the deeper each one's ring is: no more fit than an even
// spread needs, so that early blocks do not crowd on some multiprocessors. Wide matrices with many
// rows of x take two tiles a warp, which halves the traffic of x.
template <int XTiles, class Epilogue>
void launch_for_width(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const int warps_per_sm = ceil_div(ceil_div(args.n, kTileN), device_traits().num_sms);
  if (warps_per_sm <= 2) {
    launch<1, XTiles, XTiles == 1 ? 16 : 12>(args, epilogue, stream);
  } else if (warps_per_sm <= 4) {
    launch<1, XTiles, XTiles == 1 ? 11 : 8>(args, epilogue, stream);
  } else {
    launch<XTiles, XTiles, 4>(args, epilogue, stream);
  }
}

template <class Epilogue>
void launch_for_rows(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  if (args.max_rows <= 8) {
    launch_for_width<1>(args, epilogue, stream);
  } else {
    launch_for_width<2>(args, epilogue, stream);
  }
}

}  // namespace

void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream) {
  StoreOutput epilogue;
  launch_for_rows(args, epilogue, stream);
}

void launch_gemm_skinny(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  launch_for_rows(args, best, stream);
}

}  // namespace foretoken::cuda
