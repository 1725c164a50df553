#include <type_traits>

#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/tile_shape.cuh"

namespace foretoken::cuda {
namespace {

// Chunks of x that do not start on 16 bytes (k not a multiple of 8) are put together by hand.
__device__ inline uint4 gather_chunk(const __nv_bfloat16* row, int k, int limit) {
  __nv_bfloat16 values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = k + i < limit ? row[k + i] : __float2bfloat16_rn(0.0f);
  }
  uint4 chunk;
  memcpy(&chunk, values, sizeof chunk);
  return chunk;
}

// Fills the stages. Each thread has one chunk column of x and one place in the weight groups; what
// lies beyond k or the last row is zero.
template <class Shape>
struct TileLoader {
  const GemmArgs& args;
  uint4* stages;
  int first_row;    // of x
  int first_group;  // of 8 weight rows
  int num_k_atoms;
  int num_groups;

  __device__ uint4* x_of(int stage) const {
    return stages + stage % Shape::kStages * (Shape::kChunksX + Shape::kChunksW);
  }
  __device__ uint4* w_of(int stage) const { return x_of(stage) + Shape::kChunksX; }

  __device__ void load_weight(int stage) const {
    constexpr int kGroupsAtOnce = Shape::kThreads / Shape::kGroupChunks;
    const int place = threadIdx.x % Shape::kGroupChunks;
    const int group = first_group + threadIdx.x / Shape::kGroupChunks;
    const bool in_k = stage * Shape::kAtoms + place / kAtomChunks < num_k_atoms;
    const auto* from = static_cast<const uint4*>(args.weight) +
                       (int64_t{group} * num_k_atoms + stage * Shape::kAtoms) * kAtomChunks + place;
    uint4* to = w_of(stage) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < Shape::kChunksW / Shape::kThreads; ++i) {
      const int groups = i * kGroupsAtOnce;
      const bool valid = in_k && group + groups < num_groups;
      const int64_t offset = int64_t{groups} * num_k_atoms * kAtomChunks;
      copy16_async(to + i * Shape::kThreads, valid ? from + offset : args.weight, valid);
    }
  }

  __device__ void load_x(int stage) const {
    constexpr int kRowsAtOnce = Shape::kThreads / Shape::kRowChunks;
    const int row = threadIdx.x / Shape::kRowChunks;
    const int chunk = threadIdx.x % Shape::kRowChunks;
    const int k = stage * Shape::kBlockK + chunk * 8;
    const auto* x = static_cast<const __nv_bfloat16*>(args.x);
    const auto* from = x + int64_t{first_row + row} * args.k + k;
#pragma unroll
    for (int i = 0; i < Shape::kRowsX / kRowsAtOnce; ++i) {
      const int r = row + i * kRowsAtOnce;
      const bool valid = k < args.k && first_row + r < args.max_rows;
      uint4* to = x_of(stage) + x_chunk<Shape>(r, chunk);
      const auto* source = valid ? from + int64_t{i * kRowsAtOnce} * args.k : x;
      if (args.k % 8 == 0) {
        copy16_async(to, source, valid);
      } else {
        *to = valid ? gather_chunk(source - k, k, args.k) : uint4{};
      }
    }
  }
};

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksPerSm)
    gemm_tiled_kernel(GemmArgs args, Epilogue epilogue) {
  extern __shared__ uint4 stages[];
  const int num_stages = ceil_div(args.k, Shape::kBlockK);
  const TileLoader<Shape> loader{args,
                                 stages,
                                 static_cast<int>(blockIdx.x) * Shape::kRowsX,
                                 static_cast<int>(blockIdx.y) * Shape::kRowsW / kGroupRows,
                                 num_atoms(args.k),
                                 ceil_div(args.n, kGroupRows)};
  // The weight is constant: its first part is fetched while the op before still runs.
  for (int stage = 0; stage < Shape::kStages - 1; ++stage) loader.load_weight(stage);
  wait_for_previous(args.frees_next != 0);
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
  const int n = loader.first_group * kGroupRows + warp / Shape::kWarpsX * Shape::kTilesW * kTileN;
  epilogue.take_tiles(args, live, row, n, n / (Shape::kTilesW * kTileN), c);
}

template <class Shape, class Epilogue>
void launch(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const auto kernel = gemm_tiled_kernel<Shape, Epilogue>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
  if (raised != cudaSuccess) return;
  const dim3 grid(ceil_div(args.max_rows, Shape::kRowsX), ceil_div(args.n, Shape::kRowsW));
  set_width(epilogue, args, Shape::kTilesW * kTileN);
  launch_kernel(kernel, grid, Shape::kThreads, Shape::kBytes, stream, args, epilogue);
}

// Deep: one block a multiprocessor with all its shared memory.
using Rows32Deep = TileShape<32, 32, 2, 2, 128, 12, 1>;
using Rows32 = TileShape<32, 32, 2, 2, 128, 6, 2>;
using Rows32Wide = TileShape<32, 64, 1, 4, 128, 4, 2>;
using Rows64Deep = TileShape<64, 32, 4, 2, 128, 8, 1>;
using Rows64 = TileShape<64, 32, 4, 2, 128, 4, 2>;
using Rows64Wide = TileShape<64, 128, 2, 2, 64, 4, 2>;
using Rows128 = TileShape<128, 128, 2, 2, 64, 3, 2>;

template <class Epilogue>
void launch_for_shape(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  constexpr bool kStores = !std::is_same_v<Epilogue, KeepBest>;
  const int num_sms = device_traits().num_sms;
  const auto blocks = [&](int rows, int columns) {
    return ceil_div(args.max_rows, rows) * ceil_div(args.n, columns);
  };
  if (args.max_rows <= 32) {
    if (blocks(32, 32) <= num_sms) return launch<Rows32Deep>(args, epilogue, stream);
    if (blocks(32, 64) < 2 * num_sms) return launch<Rows32>(args, epilogue, stream);
    return launch<Rows32Wide>(args, epilogue, stream);
  }
  if (args.max_rows > kFewRows && blocks(128, 128) >= num_sms) {
    return launch<Rows128>(args, epilogue, stream);
  }
  // Narrow warps would keep too many columns of keys.
  if (kStores || args.max_rows <= kFewRows) {
    if (blocks(64, 32) <= num_sms) return launch<Rows64Deep>(args, epilogue, stream);
    if (blocks(64, 128) < num_sms) return launch<Rows64>(args, epilogue, stream);
  }
  return launch<Rows64Wide>(args, epilogue, stream);
}

}  // namespace

void launch_gemm_tiled(const GemmArgs& args, cudaStream_t stream) {
  with_store(args,
             [&](const GemmArgs& all, auto& epilogue) { launch_for_shape(all, epilogue, stream); });
}

void launch_gemm_tiled(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  launch_for_shape(args, best, stream);
}

}  // namespace foretoken::cuda
