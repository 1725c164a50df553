#include "kernels/experts/expert_gemm.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_tiles.cuh"
#include "kernels/gemm/cuda/tile_shape.cuh"

namespace foretoken::cuda {
namespace {

// Fills the stages of a tile; what lies beyond k, the last entry or the expert is zero.
template <class Shape, bool Scaled>
struct ExpertLoader {
  const ExpertGemmArgs& args;
  uint4* stages;
  const int* entries;  // [kRowsX] in shared memory; -1 behind the last
  int64_t first_group;
  int num_groups;  // that the expert has from first_group on
  int num_k_atoms;

  __device__ uint4* x_of(int stage) const {
    return stages + stage % Shape::kStages * (Shape::kChunksX + Shape::kChunksW);
  }
  __device__ uint4* w_of(int stage) const { return x_of(stage) + Shape::kChunksX; }

  __device__ void load_weight(int stage) const {
    constexpr int kGroupsAtOnce = Shape::kThreads / Shape::kGroupChunks;
    const int place = threadIdx.x % Shape::kGroupChunks;
    const int group = threadIdx.x / Shape::kGroupChunks;
    const bool in_k = stage * Shape::kAtoms + place / kAtomChunks < num_k_atoms;
    const auto* from = static_cast<const uint4*>(args.weight) +
                       (first_group * num_k_atoms + stage * Shape::kAtoms) * kAtomChunks + place;
    uint4* to = w_of(stage) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < Shape::kChunksW / Shape::kThreads; ++i) {
      const int at = group + i * kGroupsAtOnce;
      const bool valid = in_k && at < num_groups;
      const uint4* source = from + int64_t{at} * num_k_atoms * kAtomChunks;
      copy16_async(to + i * Shape::kThreads,
                   valid ? source : static_cast<const uint4*>(args.weight), valid);
    }
  }

  __device__ void load_x(int stage) const {
    constexpr int kRowsAtOnce = Shape::kThreads / Shape::kRowChunks;
    const int chunk = threadIdx.x % Shape::kRowChunks;
    const int k = stage * Shape::kBlockK + chunk * 8;
    const auto* x = static_cast<const __nv_bfloat16*>(args.x);
#pragma unroll
    for (int i = 0; i < Shape::kRowsX / kRowsAtOnce; ++i) {
      const int r = threadIdx.x / Shape::kRowChunks + i * kRowsAtOnce;
      const int entry = entries[r];
      const bool valid = k < args.k && entry >= 0;
      const auto* source = valid ? x + source_row(args, entry) * args.k + k : x;
      uint4* to = x_of(stage) + x_chunk<Shape>(r, chunk);
      if constexpr (Scaled) {
        *to = valid ? scaled_chunk(*reinterpret_cast<const uint4*>(source), args.x_scales[entry])
                    : uint4{};
      } else {
        copy16_async(to, source, valid);
      }
    }
  }
};

template <class Shape, bool Gated>
__device__ void store_tile(const ExpertGemmArgs& args, const ExpertTile& tile, const int* entries,
                           const float (&c)[Shape::kTilesW][Shape::kTilesX][4]) {
  const ExpertStore<__nv_bfloat16> store{args};
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int row = warp % Shape::kWarpsX * Shape::kTilesX * 8 + lane % 4 * 2;
  const int n =
      tile.column_tile * Shape::kRowsW + warp / Shape::kWarpsX * Shape::kTilesW * kTileN + lane / 4;
#pragma unroll
  for (int w = 0; w < Shape::kTilesW; ++w) {
    const int weight_row = n + w * kTileN;  // of the expert
    if (weight_row >= args.n) continue;
#pragma unroll
    for (int x = 0; x < Shape::kTilesX; ++x) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int entry = entries[row + x * 8 + i];
        if (entry < 0) continue;
        if constexpr (Gated) {  // 8 gates, then their 8 ups
          store.gated(tile.expert, entry, weight_row / kTileN * 8 + lane / 4, c[w][x][i],
                      c[w][x][i + 2]);
        } else {
          store.plain(tile.expert, entry, weight_row, c[w][x][i]);
          store.plain(tile.expert, entry, weight_row + 8, c[w][x][i + 2]);
        }
      }
    }
  }
}

// Every element is the chain of the dense product: mma.sync over ascending k, zeros behind k.
template <class Shape, bool Scaled, bool Gated>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksPerSm)
    expert_gemm_kernel(ExpertGemmArgs args) {
  extern __shared__ uint4 expert_stages[];
  __shared__ int first_tiles[kMaxExperts + 1];
  __shared__ int entries[Shape::kRowsX];
  wait_for_all_before();
  let_next_start();  // as expert_stream_kernel
  ExpertTiles::count_tiles(args.lists, Shape::kRowsX, first_tiles);
  const ExpertTiles tiles{args.lists.begins, first_tiles, args.lists.count, Shape::kRowsX,
                          ceil_div(args.n, Shape::kRowsW)};
  const int num_stages = ceil_div(args.k, Shape::kBlockK);
  const int groups = args.n / kGroupRows;  // of an expert
  for (int64_t index = blockIdx.x; index < tiles.size(); index += gridDim.x) {
    const ExpertTile tile = tiles.at(index);
    __syncthreads();  // what the tile before had is no longer read
    for (int i = threadIdx.x; i < Shape::kRowsX; i += Shape::kThreads) {
      entries[i] = i < tile.num_entries ? args.lists.entries[tile.first_entry + i] : -1;
    }
    __syncthreads();
    const int group = tile.column_tile * (Shape::kRowsW / kGroupRows);
    const ExpertLoader<Shape, Scaled> loader{args,           expert_stages,
                                             entries,        int64_t{tile.expert} * groups + group,
                                             groups - group, num_atoms(args.k)};
    for (int stage = 0; stage < Shape::kStages - 1; ++stage) {
      loader.load_weight(stage);
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
    store_tile<Shape, Gated>(args, tile, entries, c);
  }
}

template <class Shape, bool Scaled, bool Gated>
void launch(const ExpertGemmArgs& args, cudaStream_t stream) {
  const auto kernel = expert_gemm_kernel<Shape, Scaled, Gated>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
  if (raised != cudaSuccess) return;
  const int most = max_tiles(args, Shape::kRowsX, ceil_div(args.n, Shape::kRowsW));
  const int grid = std::min(most, device_traits().num_sms * Shape::kBlocksPerSm);
  launch_kernel(kernel, grid, Shape::kThreads, Shape::kBytes, stream, args);
}

template <class Shape>
void launch_shape(const ExpertGemmArgs& args, cudaStream_t stream) {
  const bool scaled = args.x_scales != nullptr;
  if (args.gated != 0) {
    return scaled ? launch<Shape, true, true>(args, stream)
                  : launch<Shape, false, true>(args, stream);
  }
  scaled ? launch<Shape, true, false>(args, stream) : launch<Shape, false, false>(args, stream);
}

// Few entries an expert: the time is that of reading the weight.
using FewRows = TileShape<16, 64, 1, 4, 128, 4, 2>;
using ManyRows = TileShape<64, 128, 2, 2, 64, 4, 2>;

constexpr int kFloatRows = 4;
constexpr int kFloatWarps = 4;
constexpr int kFloatThreads = kFloatWarps * 32;
constexpr int kFloatBlockK = 64;

// A lane computes one column for kFloatRows entries, one fused multiply-add after the other.
__global__ void __launch_bounds__(kFloatThreads) expert_gemm_float_kernel(ExpertGemmArgs args) {
  __shared__ float x_block[kFloatBlockK][kFloatRows];
  __shared__ int first_tiles[kMaxExperts + 1];
  wait_for_previous();
  ExpertTiles::count_tiles(args.lists, kFloatRows, first_tiles);
  const int columns = args.n / kFloatTileN;  // of 32, of an expert
  const ExpertTiles tiles{args.lists.begins, first_tiles, args.lists.count, kFloatRows,
                          ceil_div(columns, kFloatWarps)};
  const auto* x = static_cast<const float*>(args.x);
  const ExpertStore<float> store{args};
  for (int64_t index = blockIdx.x; index < tiles.size(); index += gridDim.x) {
    const ExpertTile tile = tiles.at(index);
    const int32_t* entries = args.lists.entries + tile.first_entry;
    const int column = tile.column_tile * kFloatWarps + static_cast<int>(threadIdx.x) / 32;
    const int64_t n_tile = int64_t{tile.expert} * columns + min(column, columns - 1);
    const float* weight =
        static_cast<const float*>(args.weight) + n_tile * args.k * kFloatTileN + threadIdx.x % 32;
    float sums[kFloatRows] = {};
    for (int k0 = 0; k0 < args.k; k0 += kFloatBlockK) {
      __syncthreads();
      for (int i = threadIdx.x; i < kFloatBlockK * kFloatRows; i += kFloatThreads) {
        const int r = i / kFloatBlockK, k = k0 + i % kFloatBlockK;
        const bool valid = r < tile.num_entries && k < args.k;
        float value = valid ? x[source_row(args, entries[r]) * args.k + k] : 0.0f;
        if (valid && args.x_scales != nullptr) {
          value = __fmul_rn(value, args.x_scales[entries[r]]);
        }
        x_block[i % kFloatBlockK][r] = value;
      }
      __syncthreads();
      const int count = min(kFloatBlockK, args.k - k0);
      for (int k = 0; k < count; ++k) {
        const float w = weight[int64_t{k0 + k} * kFloatTileN];
#pragma unroll
        for (int r = 0; r < kFloatRows; ++r) sums[r] = fmaf(x_block[k][r], w, sums[r]);
      }
    }
    const int n = column * kFloatTileN + threadIdx.x % 32;  // of the expert
#pragma unroll
    for (int r = 0; r < kFloatRows; ++r) {
      const float up = __shfl_xor_sync(0xffffffffu, sums[r], 8);
      if (column >= columns || r >= tile.num_entries) continue;
      if (args.gated == 0) {
        store.plain(tile.expert, entries[r], n, sums[r]);
      } else if (n % 16 < 8) {
        store.gated(tile.expert, entries[r], n / 16 * 8 + n % 8, sums[r], up);
      }
    }
  }
}

}  // namespace

void launch_expert_gemm(const void* packed, cudaStream_t stream) {
  ExpertGemmArgs args = op_args<ExpertGemmArgs>(packed);
  if (quantized_matrix(args.next_shared) != nullptr) args.next_shared = nullptr;
  if (args.shared.weight != nullptr && !streams_shared(args)) {
    GemmArgs shared = shared_product(args);
    // The op before has left its x where lists are old, in a kernel of its own.
    const bool apart = args.max_rows > kMaxRowsBeside;
    shared.x_is_old = args.lists_are_old != 0 ? (apart ? 1 : 0) : args.rows_are_old;
    launch_gemm(&shared, stream);
    args.shared = {};
  }
  if (const QuantizedMatrix* matrix = quantized_matrix(args.weight)) {
    return launch_experts_quantized(args, *matrix, stream);
  }
  if (launch_experts_streamed(args, stream) || launch_experts_tiled(args, stream)) return;
  if (args.dtype == DType::kF32) {
    const int most = max_tiles(args, kFloatRows, ceil_div(args.n / kFloatTileN, kFloatWarps));
    const int grid = std::min(most, device_traits().num_sms * 8);
    return launch_kernel(expert_gemm_float_kernel, grid, kFloatThreads, 0, stream, args);
  }
  const int64_t entries = int64_t{args.max_rows} * args.lists.top_k;  // of all ranks
  const int num_experts = args.lists.num_experts > 0 ? args.lists.num_experts : args.lists.count;
  entries <= int64_t{16} * num_experts ? launch_shape<FewRows>(args, stream)
                                       : launch_shape<ManyRows>(args, stream);
}

}  // namespace foretoken::cuda
