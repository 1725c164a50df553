#pragma once
#include <algorithm>

#include "kernels/cuda/gemm_common.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/cuda/wgmma.cuh"

// Products of many rows with wgmma: x is operand A (64 rows a product), the weight operand B. A
// persistent grid; in each block one warp loads and the warpgroups multiply. Blocks of a cluster
// share what they load: ClusterX neighbours along x a weight tile, ClusterW neighbours along the
// weight a tile of x.
namespace foretoken::cuda {

// A block computes Warpgroups x TilesX x 64 rows of x times N rows of the weight.
template <int Warpgroups_, int TilesX_, int N_, int ClusterX_, int ClusterW_>
struct WideShape {
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr int kTilesX = TilesX_;  // of a warpgroup
  static constexpr int kN = N_;
  static constexpr int kClusterX = ClusterX_;
  static constexpr int kClusterW = ClusterW_;
  static constexpr int kCluster = kClusterX * kClusterW;
  static constexpr int kRows = kWarpgroups * kTilesX * 64;
  static constexpr int kGroups = kN / kGroupRows;
  static constexpr int kThreads = kWarpgroups * 128 + 32;
  static constexpr int kAtomBytesX = kRows * 128;  // along 64 k
  static constexpr int kAtomBytesW = kGroups * kAtomBytes;
  static constexpr int kAtoms = kAtomBytesX + kAtomBytesW > 24576 ? 1 : 2;  // in a stage
  static constexpr int kStageBytes = kAtoms * (kAtomBytesX + kAtomBytesW);
  static constexpr int kMaxBytes = 232448;  // of shared memory in a block of sm_90
  static constexpr int kStages = std::min((kMaxBytes - 256) / kStageBytes, 12);
  static constexpr int kBytes = kStages * kStageBytes + kStages * 16;
  static_assert(kGroups % kClusterX == 0 && kGroups / kClusterX <= 32);
  static_assert(kRows % (8 * kClusterW) == 0 && kRows / kClusterW <= 256);
  static_assert(kStages >= 3 && kAtoms <= 2);
};

// Which tiles there are and in which order: along x first within bands of rows, so that the blocks
// at work share tiles of both in the L2 cache.
template <class Shape>
struct WideTiles {
  static constexpr int kBand = 16 / Shape::kClusterX;
  int num_x;  // of clusters
  int num_w;

  __device__ int count() const { return num_x * num_w; }
  __device__ int2 at(int tile) const {
    const int band = tile / (kBand * num_w) * kBand;
    const int rows = max(min(kBand, num_x - band), 1);
    const int rest = tile - band * num_w;
    return {band + rest % rows, rest / rows};
  }
};

// The ring of stages in shared memory. `full` counts bytes, `empty` the warps that are done with a
// stage in every block that this one sends to.
template <class Shape>
struct WideRing {
  uint8_t* stages;
  uint64_t* full;
  uint64_t* empty;
  int stage = 0;
  int parity = 0;

  __device__ explicit WideRing(uint8_t* shared)
      : stages(shared),
        full(reinterpret_cast<uint64_t*>(shared + Shape::kStages * Shape::kStageBytes)),
        empty(full + Shape::kStages) {}

  __device__ void init() const {
    constexpr int kSenders = Shape::kClusterX + Shape::kClusterW - 1;
    for (int i = 0; i < Shape::kStages; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, Shape::kWarpgroups * 4 * kSenders);
    }
    publish_barriers();
  }
  __device__ uint8_t* x(int atom) const {
    return stages + stage * Shape::kStageBytes + atom * Shape::kAtomBytesX;
  }
  // Groups follow each other, each with all its atoms of the stage.
  __device__ uint8_t* w() const { return x(Shape::kAtoms); }
  __device__ void advance() {
    if (++stage == Shape::kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct WideMaps {
  CUtensorMap x;
  CUtensorMap w;
};

// The loading thread. What lies beyond the edges arrives as zeros.
template <class Shape>
struct WideLoader {
  const WideMaps& maps;
  WideRing<Shape>& ring;
  int rank_x;  // place in the cluster
  int rank_w;
  uint64_t policy;  // for the weight

  __device__ void load_weight(int2 tile, int k_stage) const {
    constexpr int kShare = Shape::kGroups / Shape::kClusterX;
    const int first = (tile.y * Shape::kClusterW + rank_w) * Shape::kGroups + rank_x * kShare;
    const int3 at{0, k_stage * Shape::kAtoms, first};
    uint8_t* to = ring.w() + rank_x * kShare * Shape::kAtoms * kAtomBytes;
    if constexpr (Shape::kClusterX == 1) {
      copy_box(to, &maps.w, at, ring.full + ring.stage, policy);
    } else {
      constexpr int kRanks = (1 << Shape::kClusterX) - 1;
      copy_box_to(static_cast<uint16_t>(kRanks << (rank_w * Shape::kClusterX)), to, &maps.w, at,
                  ring.full + ring.stage, policy);
    }
  }

  __device__ void load_x(int2 tile, int k_stage) const {
    constexpr int kShare = Shape::kRows / Shape::kClusterW;
    const int row = (tile.x * Shape::kClusterX + rank_x) * Shape::kRows + rank_w * kShare;
#pragma unroll
    for (int atom = 0; atom < Shape::kAtoms; ++atom) {
      uint8_t* to = ring.x(atom) + rank_w * kShare * 128;
      const int column = (k_stage * Shape::kAtoms + atom) * kAtomK;
      if constexpr (Shape::kClusterW == 1) {
        copy_box(to, &maps.x, column, row, ring.full + ring.stage);
      } else {
        uint16_t ranks = 0;
        for (int i = 0; i < Shape::kClusterW; ++i) ranks |= 1 << (i * Shape::kClusterX + rank_x);
        copy_box_to(ranks, to, &maps.x, column, row, ring.full + ring.stage);
      }
    }
  }

  // The first stages of the first tile: their weights before the op before has ended, the rest
  // after.
  __device__ void start_weights(int2 tile, int num_stages) const {
    for (int i = 0; i < num_stages; ++i) {
      expect_bytes(ring.full + i, Shape::kAtoms * Shape::kAtomBytesW);
      load_weight(tile, i);
      ring.advance();
    }
    ring.stage = ring.parity = 0;
  }
  __device__ void start_x(int2 tile, int num_stages) const {
    for (int i = 0; i < num_stages; ++i) {
      arrive_expecting(ring.full + i, Shape::kAtoms * Shape::kAtomBytesX);
      load_x(tile, i);
      ring.advance();
    }
  }

  __device__ void load(int2 tile, int k_stage) const {
    wait_barrier(ring.empty + ring.stage, ring.parity ^ 1);
    arrive_expecting(ring.full + ring.stage, Shape::kStageBytes);
    load_weight(tile, k_stage);
    load_x(tile, k_stage);
    ring.advance();
  }
};

// A multiplying warpgroup.
template <class Shape>
struct WideProducts {
  WideRing<Shape>& ring;
  int rank_x;
  int rank_w;

  // Tells every block that fills this stage of ours that this warp has read it.
  __device__ void release(int stage) const {
    const int lane = threadIdx.x % 32;
    if constexpr (Shape::kCluster == 1) {
      if (lane == 0) arrive(ring.empty + stage);
    } else if (lane < Shape::kClusterX) {
      arrive_at(ring.empty + stage, rank_w * Shape::kClusterX + lane);
    } else if (lane < Shape::kClusterX + Shape::kClusterW - 1) {
      const int other = lane - Shape::kClusterX;
      const int column = other < rank_w ? other : other + 1;
      arrive_at(ring.empty + stage, column * Shape::kClusterX + rank_x);
    }
  }

  __device__ void skip(int num_stages) const {
    for (int i = 0; i < num_stages; ++i) {
      wait_barrier(ring.full + ring.stage, ring.parity);
      release(ring.stage);
      ring.advance();
    }
  }

  __device__ void multiply(float (&c)[Shape::kTilesX][Shape::kN / 2], int num_stages) const {
    int last = 0;
    for (int i = 0; i < num_stages; ++i) {
      multiply_stage(c, i > 0);
      wgmma_wait<1>();
      if (i > 0) release(last);
      last = ring.stage;
      ring.advance();
    }
    wgmma_wait<0>();
    release(last);
  }

 private:
  __device__ void multiply_stage(float (&c)[Shape::kTilesX][Shape::kN / 2], bool add) const {
    constexpr int kTileBytes = 64 * 128;
    const int first_tile = static_cast<int>(threadIdx.x) / 128 * Shape::kTilesX;
    wait_barrier(ring.full + ring.stage, ring.parity);
    wgmma_fence();
#pragma unroll
    for (int atom = 0; atom < Shape::kAtoms; ++atom) {
      const uint32_t x = shared_address(ring.x(atom)) + first_tile * kTileBytes;
      const uint64_t b = swizzled_operand(shared_address(ring.w()) + atom * kAtomBytes,
                                          Shape::kAtoms * kAtomBytes);
#pragma unroll
      for (int step = 0; step < kAtomK / 16; ++step) {
#pragma unroll
        for (int i = 0; i < Shape::kTilesX; ++i) {
          const uint64_t a = swizzled_operand(x + i * kTileBytes, kAtomBytes);
          wgmma<Shape::kN>(c[i], a + step * 2, b + step * 2, add || atom + step > 0);
        }
      }
    }
    wgmma_commit();
  }
};

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm_wide_kernel(GemmArgs args, Epilogue epilogue, const __grid_constant__ WideMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  WideRing<Shape> ring(shared);
  const int rank = Shape::kCluster == 1 ? 0 : cluster_rank();
  const int rank_x = rank % Shape::kClusterX;
  const int rank_w = rank / Shape::kClusterX;
  const bool loads = threadIdx.x == Shape::kWarpgroups * 128;
  if (threadIdx.x == 0) ring.init();
  if (loads) {
    prefetch_map(&maps.x);
    prefetch_map(&maps.w);
  }
  if constexpr (Shape::kCluster > 1) sync_cluster();
  __syncthreads();
  int num_stages = ceil_div(args.k, Shape::kAtoms * kAtomK);
  WideTiles<Shape> tiles{ceil_div(args.max_rows, Shape::kRows * Shape::kClusterX),
                         ceil_div(args.n, Shape::kN * Shape::kClusterW)};
  const WideLoader<Shape> loader{maps, ring, rank_x, rank_w,
                                 tiles.num_x == 1 ? evict_first_policy() : evict_normal_policy()};
  // The weight is constant: where the first tile does not depend on the live rows, it is fetched
  // while the op before still runs.
  const int first = static_cast<int>(blockIdx.x) / Shape::kCluster;
  const int early = tiles.num_x == 1 ? min(Shape::kStages, num_stages) : 0;
  if (loads) loader.start_weights(tiles.at(first), early);
  wait_for_previous();
  let_next_start();
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  tiles.num_x = ceil_div(live, Shape::kRows * Shape::kClusterX);
  const int step = static_cast<int>(gridDim.x) / Shape::kCluster;
  int count = tiles.count();
  if (live == 0 && early > 0) {  // what is under way must land before the block may end
    tiles.num_x = 1;
    num_stages = early;
    count = step;
  }
  if (loads) {
    loader.start_x(tiles.at(first), early);
    for (int t = first; t < count; t += step) {
      for (int i = t == first ? early : 0; i < num_stages; ++i) loader.load(tiles.at(t), i);
    }
  } else if (threadIdx.x < Shape::kWarpgroups * 128) {
    const WideProducts<Shape> products{ring, rank_x, rank_w};
    const int warpgroup = threadIdx.x / 128;
    for (int t = first; t < count; t += step) {
      const int2 tile = tiles.at(t);
      const int row =
          (tile.x * Shape::kClusterX + rank_x) * Shape::kRows + warpgroup * Shape::kTilesX * 64;
      const int column = tile.y * Shape::kClusterW + rank_w;
      if (row >= live) {
        products.skip(num_stages);
        continue;
      }
      float c[Shape::kTilesX][Shape::kN / 2];
      products.multiply(c, num_stages);
#pragma unroll
      for (int i = 0; i < Shape::kTilesX; ++i) {
        epilogue.take_rows(args, live, row + i * 64, column * Shape::kN, column, c[i]);
      }
    }
  }
  __syncwarp();
  if constexpr (Shape::kCluster > 1) sync_cluster();
#endif
}

template <class Shape, class Epilogue>
int resident_clusters() {
  const auto kernel = gemm_wide_kernel<Shape, Epilogue>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes) !=
      cudaSuccess) {
    return 0;
  }
  if (Shape::kCluster == 1) return device_traits().num_sms;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {Shape::kCluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = Shape::kCluster;
  config.blockDim = Shape::kThreads;
  config.dynamicSmemBytes = Shape::kBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  return cudaOccupancyMaxActiveClusters(&count, kernel, &config) == cudaSuccess ? count : 0;
}

// False when the device or the driver cannot run it.
template <class Shape, class Epilogue>
bool launch_wide(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  static const int resident = resident_clusters<Shape, Epilogue>();
  WideMaps maps;
  if (resident == 0 ||
      !make_row_map(maps.x, args.x, args.max_rows, args.k, Shape::kRows / Shape::kClusterW) ||
      !make_weight_map(maps.w, args.weight, args.n, args.k, Shape::kAtoms,
                       Shape::kGroups / Shape::kClusterX)) {
    return false;
  }
  const int tiles = ceil_div(args.max_rows, Shape::kRows * Shape::kClusterX) *
                    ceil_div(args.n, Shape::kN * Shape::kClusterW);
  set_width(epilogue, args, Shape::kN);
  launch_cluster(gemm_wide_kernel<Shape, Epilogue>, std::min(tiles, resident) * Shape::kCluster,
                 Shape::kCluster, Shape::kThreads, Shape::kBytes, stream, args, epilogue, maps);
  return true;
}

}  // namespace foretoken::cuda
