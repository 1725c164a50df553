#pragma once
#include <type_traits>

#include "kernels/gemm/cuda/gemm_wide_ring.cuh"

// Products of many rows with wgmma: x is operand A (64 rows a product), the weight operand B. A
// persistent grid; in each block one thread loads and the warpgroups multiply. The other threads of
// the loading warpgroup only give their registers to the multiplying ones.
namespace foretoken::cuda {

// A multiplying warpgroup.
template <class Shape>
struct WideProducts {
  WideRing<Shape>& ring;
  const WideWork<Shape>& work;
  uint8_t* shared;
  // Known to be the same in a warp, so that descriptors need no copies to uniform registers.
  int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);

  template <class Epilogue>
  __device__ void run(const GemmArgs& args, const Epilogue& epilogue) const {
    const int warpgroup_row = warpgroup * Shape::kTilesX * 64;
    skip(work.dropped);
    for (int t = work.first; t < work.count; t += work.step) {
      const int2 tile = work.tiles.at(t);
      const int row = work.first_row(tile) + warpgroup_row;
      if (row >= work.live) {
        skip(work.num_stages);
        continue;
      }
      Sums c;
      multiply(c);
      const int column = work.column(tile);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const int n = column * Shape::kN + i % Shape::kTilesW * kTileN;
        take(args, epilogue, row + i / Shape::kTilesW * 64, n, column, c[i]);
      }
    }
    if constexpr (kIsStaged<Epilogue>) wait_boxes();
  }

 private:
  static constexpr int kTiles = Shape::kTilesX * Shape::kTilesW;
  static constexpr int kTileN = Shape::kN / Shape::kTilesW;
  using Sums = float[kTiles][kTileN / 2];  // tiles of a row of x follow each other

  template <class Epilogue>
  __device__ void take(const GemmArgs& args, const Epilogue& epilogue, int row, int n, int column,
                       float (&c)[kTileN / 2]) const {
    if constexpr (kIsStaged<Epilogue>) {
      uint8_t* own = shared + Shape::kStagingAt + threadIdx.x / 32 * kStagedBytes;
      epilogue.take_staged(args, work.live, row, n, own, c);
    } else {
      epilogue.take_rows(args, work.live, row, n, column, c);
    }
  }

  // Tells every block that fills this stage of ours that this warp has read it.
  __device__ void release(int stage) const {
    const int lane = threadIdx.x % 32;
    if constexpr (Shape::kCluster == 1) {
      if (lane == 0) arrive(ring.empty + stage);
    } else if (lane < Shape::kClusterX) {
      arrive_at(ring.empty + stage, work.rank_w * Shape::kClusterX + lane);
    } else if (lane < Shape::kClusterX + Shape::kClusterW - 1) {
      const int other = lane - Shape::kClusterX;
      const int column = other < work.rank_w ? other : other + 1;
      arrive_at(ring.empty + stage, column * Shape::kClusterX + work.rank_x);
    }
  }

  __device__ void skip(int num_stages) const {
    for (int i = 0; i < num_stages; ++i) {
      wait_barrier(ring.full + ring.at.place, ring.at.parity);
      release(ring.at.place);
      ring.at.advance();
    }
  }

  __device__ void multiply(Sums& c) const {
    int last = 0;
    for (int i = 0; i < work.num_stages; ++i) {
      multiply_stage(c, i > 0);
      wgmma_wait<1>();
      if (i > 0) release(last);
      last = ring.at.place;
      ring.at.advance();
    }
    wgmma_wait<0>();
    release(last);
  }

  __device__ void multiply_stage(Sums& c, bool add) const {
    constexpr int kTileBytes = 64 * 128;
    constexpr int kTileBytesW = kTileN / kGroupRows * Shape::kAtoms * kAtomBytes;
    const int first_tile = warpgroup * Shape::kTilesX;
    wait_barrier(ring.full + ring.at.place, ring.at.parity);
    wgmma_fence();
#pragma unroll
    for (int atom = 0; atom < Shape::kAtoms; ++atom) {
      const uint32_t x = shared_address(ring.x(atom)) + first_tile * kTileBytes;
      const uint64_t b = swizzled_operand(shared_address(ring.w()) + atom * kAtomBytes,
                                          Shape::kAtoms * kAtomBytes);
#pragma unroll
      for (int step = 0; step < kAtomK / 16; ++step) {
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const uint64_t a = swizzled_operand(x + i / Shape::kTilesW * kTileBytes, kAtomBytes);
          const uint64_t tile = b + i % Shape::kTilesW * (kTileBytesW / 16);
          wgmma<kTileN>(c[i], a + step * 2, tile + step * 2, add || atom + step > 0);
        }
      }
    }
    wgmma_commit();
  }
};

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm_wide_kernel(GemmArgs args, const __grid_constant__ Epilogue epilogue,
                     const __grid_constant__ WideMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  WideRing<Shape> ring(shared);
  WideWork<Shape> work(args);
  WideLoader<Shape> loader{maps, ring};
  constexpr int kLoading = Shape::kWarpgroups * 128;
  if (threadIdx.x == 0) ring.init();
  if constexpr (Shape::kCluster > 1) sync_cluster();
  __syncthreads();
  // The weight is constant: its first part is fetched while the op before still runs.
  if (threadIdx.x == kLoading) loader.start(work);
  if (args.x_is_old != 0) let_next_start();
  wait_for_rows(args);
  work.set_live(live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows));
  constexpr bool kMovesRegisters = Shape::kWarpgroups > 1;  // one has all that a thread can use
  if (threadIdx.x < kLoading) {
    if constexpr (kMovesRegisters) raise_registers<Shape::kProductRegisters>();
    WideProducts<Shape>{ring, work, shared}.run(args, epilogue);
  } else {
    if constexpr (kMovesRegisters) lower_registers<Shape::kLoaderRegisters>();
    if (threadIdx.x == kLoading) loader.run(work);
  }
  // A block stays while others of its cluster may still send to it.
  __syncwarp();
  if constexpr (Shape::kCluster > 1) sync_cluster();
  wait_behind_stores(args);
#endif
}

// How many clusters of this many blocks, one block a multiprocessor, run at once; 0: none can.
// Devices of one kind differ, because other multiprocessors of theirs are switched off.
int resident_clusters(int cluster);

// False when the device or the driver cannot run it. Only where resident_clusters are not 0.
template <class Shape, class Epilogue>
bool launch_wide_with(const GemmArgs& args, const Epilogue& epilogue, cudaStream_t stream) {
  // Of the current device: the ranks of a process have several.
  if (cudaFuncSetAttribute(gemm_wide_kernel<Shape, Epilogue>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                           Shape::kBytes) != cudaSuccess) {
    return false;
  }
  WideMaps maps;
  if (!make_row_map(maps.x, args.x, args.max_rows, args.k, Shape::kRows / Shape::kClusterW) ||
      !make_weight_map(maps.w, args.weight, args.n, args.k, Shape::kAtoms,
                       Shape::kGroups / Shape::kClusterX)) {
    return false;
  }
  const int tiles = ceil_div(args.max_rows, Shape::kRows * Shape::kClusterX) *
                    ceil_div(args.n, Shape::kN * Shape::kClusterW);
  const int num_clusters = std::min(tiles, resident_clusters(Shape::kCluster));
  launch_cluster(gemm_wide_kernel<Shape, Epilogue>, num_clusters * Shape::kCluster, Shape::kCluster,
                 Shape::kThreads, Shape::kBytes, stream, args, epilogue, maps);
  return true;
}

template <class Shape, class Epilogue>
bool launch_wide(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  using Staged = typename StagedOf<Epilogue>::Type;
  if constexpr (Shape::kStaged && !std::is_void_v<Staged>) {
    Staged staged;
    if (make_staged(staged, epilogue, args)) {
      return launch_wide_with<Shape>(args, staged, stream);
    }
  }
  set_width(epilogue, args, Shape::kN);
  return launch_wide_with<Shape>(args, epilogue, stream);
}

}  // namespace foretoken::cuda
