#pragma once
#include "kernels/experts/cuda/expert_loaders.cuh"
#include "kernels/experts/cuda/expert_store.cuh"
#include "kernels/experts/cuda/expert_units.cuh"

// Products of experts with wgmma: 64 columns of an expert are operand A, its entries operand B, so
// that few entries take few operations. Blocks are persistent. In each, one thread streams weights
// through a ring in shared memory, running ahead across parts, so that memory is never idle; some
// warps gather the rows of x that entries name into another ring; warpgroups multiply.
namespace foretoken::cuda {

// A warpgroup: multiplies and stores.
template <class Shape, bool Gated>
struct ExpertProducts {
  const ExpertGemmArgs& args;
  const ExpertScales& scales;
  ExpertReader<Shape> at;
  int turn = 0;

  __device__ void run(PartsOf<Shape>& parts) {
    using Units = typename Shape::Units;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const int first = warpgroup * Shape::kTiles * 4;  // pair of a part
    int* entries = at.rings.part_entries + warpgroup * 2 * Shape::kEntries;
    ExpertPart part;
    while (parts.next(part)) {
      const ExpertMatrix<Units> matrix(args, part.expert);
      if (first >= part.num_pairs) {
        at.skip(ceil_div(matrix.units, Shape::kUnits));
        continue;
      }
      int* own = entries + turn * Shape::kEntries;  // the other half may still be read
      turn ^= 1;
      find_entries(part, own);
      typename Units::template Chain<Shape> chain;
      chain.run(at, matrix.units);
      asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
      const ExpertPartStore<Shape::kEntries, Gated> store(args, part, own);
#pragma unroll
      for (int i = 0; i < Shape::kTiles; ++i) {
        const int pair = first + i * 4 + static_cast<int>(threadIdx.x) % 128 / 32;
        if (pair >= part.num_pairs) continue;
        const int column = part.first_pair + pair;
        chain.scale(scales.of_rows,
                    (int64_t{part.expert} * (args.n / kPairRows) + column) * kPairRows);
        if constexpr (Units::kScaleX > 0) {
          if (args.x_scales != nullptr) chain.scale_entries(args.x_scales, own, part.num_entries);
        }
        store.take(column, chain.tile(i));
      }
    }
  }

 private:
  __device__ void find_entries(const ExpertPart& part, int* to) const {
    for (int i = static_cast<int>(threadIdx.x) % 128; i < part.num_entries; i += 128) {
      const int place = part.first_entry + i;
      to[i] = part.expert == kSharedExpert ? place : args.lists.entries[place];
    }
  }
};

// The warps that do something: those that multiply, then those that load weights, then those that
// gather rows.
template <class Shape>
struct ExpertWarps {
  static constexpr int kLoader = Shape::kProducts / 32;
  static constexpr int kRows = kLoader + Shape::kWarpsW;
  static constexpr int kEnd = kRows + Shape::kWarpsX;
};

// The first tiles of experts, which one warp has counted: the others that do something wait.
template <class Shape>
__device__ void arrive_with_tiles() {
  asm volatile("bar.arrive 8, %0;" ::"n"(ExpertWarps<Shape>::kEnd * 32) : "memory");
}
template <class Shape>
__device__ void sync_with_tiles() {
  asm volatile("bar.sync 8, %0;" ::"n"(ExpertWarps<Shape>::kEnd * 32) : "memory");
}

__device__ inline void let_next_know_lists() {
  wait_for_all_before();
  let_next_start();
}

// run(parts) for what is shared, then for the experts' parts, as soon as there are lists.
template <class Shape, class Run>
__device__ void run_shared_first(const ExpertGemmArgs& args, const int* first_tiles, int live,
                                 const Run& run) {
  PartsOf<Shape> parts(args);
  parts.open_shared(live);
  run(parts);
  __syncwarp();
  let_next_know_lists();
  sync_with_tiles<Shape>();
  parts.open(first_tiles, live);
  run(parts);
}

// One thread: this block's part of the weight that the next product shares comes to the L2 cache.
__device__ inline void fetch_next_shared(const ExpertGemmArgs& args) {
  if (args.next_shared == nullptr) return;
  constexpr int kPiece = 8 << 10;
  const int64_t bytes =
      int64_t{ceil_div(args.next_n, kGroupRows)} * num_atoms(args.next_k) * kAtomBytes;
  for (int64_t at = int64_t{blockIdx.x} * kPiece; at < bytes; at += int64_t{gridDim.x} * kPiece) {
    fetch_to_cache(static_cast<const uint8_t*>(args.next_shared) + at,
                   static_cast<int>(min(bytes - at, int64_t{kPiece})));
  }
}

// A block where rows_are_old. Every warp waits for the ops before: none may end before they have.
template <class Shape, bool Gated>
__device__ void run_beside_routing(const ExpertGemmArgs& args, const ExpertScales& scales,
                                   const ExpertRings<Shape>& rings,
                                   ExpertWeightLoader<Shape>& loader, int warp) {
  using Warps = ExpertWarps<Shape>;
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  __syncthreads();  // the rings are there
  if (live == 0 || warp >= Warps::kEnd) {
    if (warp == Warps::kLoader && elect_lane()) loader.drop();
    __syncwarp();
    let_next_know_lists();
  } else if (warp < Warps::kLoader) {
    ExpertProducts<Shape, Gated> products{args, scales, {rings}};
    run_shared_first<Shape>(args, rings.first_tiles, live,
                            [&](PartsOf<Shape>& parts) { products.run(parts); });
  } else if (warp == Warps::kLoader) {
    if (elect_lane()) {
      loader.run();
      fetch_next_shared(args);
    }
    __syncwarp();
    let_next_know_lists();
    ExpertTiles::count_tiles_by_warp(args.lists, Shape::kEntries, rings.first_tiles);
    arrive_with_tiles<Shape>();
    loader.parts.open(rings.first_tiles, live);
    if (elect_lane()) loader.run();
  } else {
    ExpertRowLoader<Shape> rows{args, scales, rings, warp - Warps::kRows};
    run_shared_first<Shape>(args, rings.first_tiles, live,
                            [&](PartsOf<Shape>& parts) { rows.run(parts); });
  }
}

// Shapes that take what is shared beside the experts.
template <class Shape>
inline constexpr bool kTakesShared =
    !Shape::kTiled && Shape::kWarpsW == 1 && Shape::kEntries == kGroupRows;

// Lets the next op start once it knows that all before it have ended, so that the product behind
// it knows the lists from the start where lists_are_old.
template <class Shape, bool Gated>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    expert_stream_kernel(const __grid_constant__ ExpertGemmArgs args,
                         const __grid_constant__ ExpertScales scales) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  using Warps = ExpertWarps<Shape>;
  const ExpertRings<Shape> rings(shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const bool loads = warp >= Warps::kLoader && warp < Warps::kRows;
  ExpertWeightLoader<Shape> loader(args, scales, rings, loads ? warp - Warps::kLoader : 0);
  int live = 0;
  const auto know_lists = [&] {
    live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
    ExpertTiles::count_tiles(args.lists, Shape::kEntries, rings.first_tiles);
    loader.parts.open(rings.first_tiles, live);
  };
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes, which takes longer than the bytes do.
  if (warp == Warps::kLoader && elect_lane()) rings.init();
  __syncwarp();
  if (args.lists_are_old != 0) know_lists();
  if (loads && elect_lane()) loader.start();
  __syncwarp();
  if constexpr (kTakesShared<Shape>) {
    if (args.rows_are_old != 0 && args.shared.weight != nullptr) {
      return run_beside_routing<Shape, Gated>(args, scales, rings, loader, warp);
    }
  }
  let_next_know_lists();
  if (args.lists_are_old == 0) know_lists();
  if (live == 0) {
    if (loads && elect_lane()) loader.drop();
    return;
  }
  PartsOf<Shape> parts(args);
  if (warp < Warps::kLoader) {
    if constexpr (Shape::kMovesRegisters) raise_registers<Shape::kProductRegisters>();
    parts.open(rings.first_tiles, live);
    ExpertProducts<Shape, Gated>{args, scales, {rings}}.run(parts);
    return;
  }
  if constexpr (Shape::kMovesRegisters) lower_registers<Shape::kLoaderRegisters>();
  if (loads) {
    if (elect_lane()) loader.run();
  } else if (warp < Warps::kEnd) {
    parts.open(rings.first_tiles, live);
    ExpertRowLoader<Shape>{args, scales, rings, warp - Warps::kRows}.run(parts);
  }
#endif
}

// args.weight: units in device memory. False when the device cannot run it.
template <class Shape>
bool launch_expert_shape(const ExpertGemmArgs& args, cudaStream_t stream,
                         const ExpertScales& scales = {}) {
  const auto kernel =
      args.gated != 0 ? expert_stream_kernel<Shape, true> : expert_stream_kernel<Shape, false>;
  const int bytes = Shape::bytes(args.lists.count);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
      cudaSuccess) {
    return false;
  }
  launch_kernel(kernel, device_traits().num_sms * Shape::kBlocks, Shape::kThreads, bytes, stream,
                args, scales);
  return true;
}

}  // namespace foretoken::cuda
