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

  __device__ void run(PartsOf<Shape> parts) {
    using Units = typename Shape::Units;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const int first = warpgroup * Shape::kTiles * 4;  // pair of a part
    int* entries = at.rings.part_entries + warpgroup * 2 * Shape::kEntries;
    int turn = 0;
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

// Lets the next op start once it knows that all before it have ended, so that the product behind
// it knows the lists from the start where lists_are_old.
template <class Shape, bool Gated>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    expert_stream_kernel(const __grid_constant__ ExpertGemmArgs args,
                         const __grid_constant__ ExpertScales scales) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  const ExpertRings<Shape> rings(shared);
  constexpr int kLoader = Shape::kProducts / 32;
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const bool loads = warp >= kLoader && warp < kLoader + Shape::kWarpsW;
  ExpertWeightLoader<Shape> loader(args, scales, rings, loads ? warp - kLoader : 0);
  int live = 0;
  const auto know_lists = [&] {
    ExpertTiles::count_tiles(args.lists, Shape::kEntries, rings.first_tiles);
    live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
    loader.parts.open(rings.first_tiles, live);
  };
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes, which takes longer than the bytes do.
  if (warp == kLoader && elect_lane()) rings.init();
  __syncwarp();
  if (args.lists_are_old != 0) know_lists();
  if (loads && elect_lane()) loader.start();
  __syncwarp();
  wait_for_all_before();
  let_next_start();
  if (args.lists_are_old == 0) know_lists();
  if (live == 0) {
    if (loads && elect_lane()) loader.drop();
    return;
  }
  if (threadIdx.x < Shape::kProducts) {
    if constexpr (Shape::kMovesRegisters) raise_registers<Shape::kProductRegisters>();
    PartsOf<Shape> parts(args);
    parts.open(rings.first_tiles, live);
    ExpertProducts<Shape, Gated>{args, scales, {rings}}.run(parts);
    return;
  }
  if constexpr (Shape::kMovesRegisters) lower_registers<Shape::kLoaderRegisters>();
  if (loads) {
    if (elect_lane()) loader.run();
  } else if (warp < kLoader + Shape::kWarpsW + Shape::kWarpsX) {
    PartsOf<Shape> parts(args);
    parts.open(rings.first_tiles, live);
    ExpertRowLoader<Shape>{args, scales, rings, warp - kLoader - Shape::kWarpsW}.run(parts);
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
