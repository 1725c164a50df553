#pragma once
#include <algorithm>

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/dequant_ring.cuh"
#include "kernels/gemm/cuda/forms/dequant_split_warp.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

// Up to 64 rows. One thread brings units of the weight and of x through a ring, a box each; every
// warpgroup takes 64 rows of the weight. Where these are too few for the device, four blocks of a
// cluster have a part of k each and meet in shared memory.
namespace foretoken::cuda {

// Rows rows of x times Warpgroups x 64 rows of the weight a block; a stage is 128 of k. Two blocks
// of two warpgroups share a multiprocessor.
template <class Form_, int Rows_, int Warpgroups_>
struct DequantSplitShape {
  using Form = Form_;
  static constexpr int kRows = Rows_;
  static constexpr int kTiles = Rows_ / 8;
  static constexpr int kWarps = Warpgroups_ * 4;  // that multiply
  static constexpr int kGroups = Warpgroups_ * 8;
  static constexpr int kThreads = kWarps * 32 + 32;
  static constexpr int kBlocks = Warpgroups_ <= 2 ? 2 : 1;  // of a multiprocessor
  static constexpr int kAtomX = kRows * 128;
  static constexpr int kStageX = kUnitK / kAtomK * kAtomX;
  static constexpr int kStageW = kGroups * kUnitBytes<Form>;
  static constexpr int kStage = kStageX + (kStageW + 1023) / 1024 * 1024;
  static constexpr int kSlotBytes = 32 * 16;  // four sums of each lane of a warp
  static constexpr int kSums = kWarps * kTiles * kSlotBytes;
  static constexpr int kMaxBytes = 233472 / kBlocks - 1024;
  static constexpr int kMaxPlaces = 8;
  static_assert(!Form::kScalesUnits && Rows_ % 8 == 0 && Rows_ <= 64);
};

// Barrier of all threads of a cluster that orders what they wrote to shared memory.
__device__ inline void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// What the host chooses for a launch.
struct DequantSplitPlan {
  int splits;  // of k: 1, or kMaxParts
  int places;  // of the ring
};

struct DequantSplitMaps {
  CUtensorMap x;
  CUtensorMap w;
};

template <class Shape>
struct DequantSplitBlock {
  using Form = typename Shape::Form;
  using Warp = DequantSplitWarp<Shape>;
  static constexpr int kUnit = kUnitBytes<Form>;
  static constexpr int kTiles = Shape::kTiles;

  const GemmArgs& args;
  const QuantizedMatrix& matrix;
  const DequantSplitPlan& plan;
  uint8_t* shared;
  DequantRing ring;  // of a unit of x and then of the weight
  int part;          // of k; 0 where this block has all of it
  int first_group;   // of 8 rows of the weight
  int units;         // along k, of all blocks
  int begin;         // unit of this block
  int end;

  __device__ DequantSplitBlock(const GemmArgs& gemm, const QuantizedMatrix& weight,
                               const DequantSplitPlan& launch, uint8_t* memory)
      : args(gemm),
        matrix(weight),
        plan(launch),
        shared(memory),
        ring(memory, reinterpret_cast<uint64_t*>(memory + launch.places * Shape::kStage),
             launch.places, Shape::kStage),
        part(static_cast<int>(blockIdx.x) % launch.splits),
        first_group(static_cast<int>(blockIdx.x) / launch.splits * Shape::kGroups),
        units(num_units(gemm.k)),
        begin(0),
        end(units) {
    if (plan.splits == 1) return;
    begin = min(units, part * part_units(units));
    end = min(units, begin + part_units(units));
  }

  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }
  __device__ int early() const { return min(plan.places, end - begin); }

  __device__ void init() const {
    ring.init(Shape::kWarps, 2);
    publish_barriers();
  }

  // What lies beyond the edges arrives as zeros.
  __device__ void load_weight(int unit, const CUtensorMap& map, uint64_t policy) const {
    arrive_expecting(ring.arrival(), Shape::kStageW);
    copy_box(ring.here() + Shape::kStageX, &map, int3{0, unit, first_group}, ring.arrival(),
             policy);
  }
  __device__ void load_x(int unit, const CUtensorMap& map) const {
    arrive_expecting(ring.arrival(), Shape::kStageX);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      copy_box(ring.here() + i * Shape::kAtomX, &map, unit * kUnitK + i * kAtomK, 0,
               ring.arrival());
    }
  }

  // One thread. The weight is constant, so that its ring is filled while the op before runs.
  __device__ void bring(const DequantSplitMaps& maps) {
    const uint64_t policy = evict_first_policy();
    const DequantRing first = ring;
    const int ahead = begin + early();
    for (int unit = begin; unit < ahead; ++unit, ring.advance()) {
      load_weight(unit, maps.w, policy);
    }
    wait_for_previous();
    if (live() == 0) return drain(first);
    const DequantRing after = ring;
    ring = first;
    for (int unit = begin; unit < ahead; ++unit, ring.advance()) load_x(unit, maps.x);
    ring = after;
    for (int unit = ahead; unit < end; ++unit, ring.advance()) {
      ring.wait_empty();
      load_weight(unit, maps.w, policy);
      load_x(unit, maps.x);
    }
  }
  // What is under way must land before the block may end.
  __device__ void drain(DequantRing at) const {
    for (int i = 0; i < early(); ++i, at.advance()) {
      arrive(at.arrival());
      at.wait_full();
    }
  }

  // The warps that multiply. Products of a half are under way while the next half is widened and
  // the codes of the next unit are read; a place is given back when its products have ended.
  __device__ void multiply(Warp& warp, int index) {
    DequantRing ahead = ring;
    const auto load = [&] {
      ahead.wait_full();
      warp.load(ahead.here() + Shape::kStageX + index * 2 * kUnit);
      ahead.advance();
    };
    if (begin == end) return;
    load();
    warp.template widen<0>();
    int first = begin;  // unit of the part under way
    for (int unit = begin; unit < end; ++unit) {
      const uint32_t x = shared_address(ring.here());
      warp.template start<0>(x, unit > first);
      wgmma_wait<1>();
      if (unit > begin) release_before();
      warp.template widen<1>();
      if (unit + 1 < end) load();
      warp.template start<1>(x, true);
      wgmma_wait<1>();
      if (unit + 1 < end) warp.template widen<0>();
      ring.advance();
      if (plan.splits > 1 || (unit + 1 < end && unit + 1 < first + part_units(units))) continue;
      wgmma_wait<0>();
      warp.add_to(sums_of(index), first == begin);
      first = unit + 1;
    }
    wgmma_wait<0>();
  }
  __device__ void release_before() const {
    if (threadIdx.x % 32 != 0) return;
    arrive(ring.empty + (ring.place == 0 ? plan.places : ring.place) - 1);
  }

  // Until no block of the cluster needs its ring any more.
  __device__ void leave() const {
    if (plan.splits > 1) meet_cluster();
  }

  // Where a warp that has all of k keeps its sums.
  __device__ float4* sums_of(int warp) const {
    return reinterpret_cast<float4*>(ring.empty + plan.places) + warp * kTiles * 32;
  }

  // Leaves a part with the block of the cluster that adds up these rows.
  __device__ void put(Warp& warp, int index) const {
    if (begin == end) return;
    pin_registers(warp.c);
    uint32_t to;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(to)
                 : "r"(shared_address(shared)), "r"(rank_of_pair(index)));
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int slot = slot_of_part(part, index, t, kTiles);
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                       to + slot * Shape::kSlotBytes + threadIdx.x % 32 * 16),
                   "f"(warp.c[t * 4]), "f"(warp.c[t * 4 + 1]), "f"(warp.c[t * 4 + 2]),
                   "f"(warp.c[t * 4 + 3])
                   : "memory");
    }
  }

  // Stores the sums of this block's rows; of a warp that has all of k its own.
  template <class Epilogue>
  __device__ void store(const Epilogue& epilogue, int index) const {
    const bool apart = plan.splits > 1;
    const auto* slots = reinterpret_cast<const float4*>(shared) + threadIdx.x % 32;
    const int count = apart ? kPairsOfRank * kTiles : kTiles;
    const int rows = live();
#pragma unroll 1
    for (int i = apart ? index : 0; i < count; i += apart ? Shape::kWarps : 1) {
      const int tile = i % kTiles;
      const int pair = apart ? part * kPairsOfRank + i / kTiles : index;
      float4 sum = apart ? float4{} : sums_of(index)[tile * 32 + threadIdx.x % 32];
      for (int p = 0; apart && p < num_parts(units); ++p) {
        sum = Warp::sum_of(sum, slots[slot_of_part(p, pair, tile, kTiles) * 32]);
      }
      store_tile(epilogue, rows, tile, first_group + pair * 2, sum);
    }
  }
  template <class Epilogue>
  __device__ void store_tile(const Epilogue& epilogue, int rows, int tile, int group,
                             const float4& sum) const {
    float tiles[1][1][4] = {{{sum.x, sum.y, sum.z, sum.w}}};
    const int row = group * kGroupRows;  // of the weight
    if (matrix.row_scales != nullptr) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int own = row + static_cast<int>(threadIdx.x) % 32 / 4 + i / 2 * 8;
        tiles[0][0][i] *= own < args.n ? matrix.row_scales[own] : 0.0f;
      }
    }
    epilogue.take_tiles(args, rows, tile * 8, row, row / kTileN, tiles);
  }
};

// The blocks of a cluster: parts of k.
template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_dequant_split_kernel(const __grid_constant__ GemmArgs args,
                              const __grid_constant__ QuantizedMatrix matrix,
                              const __grid_constant__ DequantSplitPlan plan, Epilogue epilogue,
                              const __grid_constant__ DequantSplitMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  DequantSplitBlock<Shape> block(args, matrix, plan, shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes.
  if (warp == Shape::kWarps && elect_lane()) block.init();
  __syncwarp();
  let_next_start();
  __syncthreads();
  if (warp == Shape::kWarps) {
    if (elect_lane()) block.bring(maps);
    __syncwarp();
    wait_for_previous();
    if (block.live() == 0) return;
    block.leave();
    if (plan.splits > 1) meet_cluster();
    return;
  }
  wait_for_previous();
  if (block.live() == 0) return;
  DequantSplitWarp<Shape> own;
  block.multiply(own, warp);
  block.leave();
  if (plan.splits > 1) {
    block.put(own, warp);
    meet_cluster();
  }
  block.store(epilogue, warp);
#endif
}

// False when the operands do not fit.
template <class Shape, class Epilogue>
bool launch_dequant_split(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                          int splits, cudaStream_t stream) {
  const auto kernel = gemm_dequant_split_kernel<Shape, Epilogue>;
  const int sums = splits == 1 ? Shape::kSums : 0;
  const int room = (Shape::kMaxBytes - sums) / (Shape::kStage + 16);
  const int units = num_units(args.k);
  const DequantSplitPlan plan{
      splits, std::min({room, Shape::kMaxPlaces, splits == 1 ? units : part_units(units)})};
  // Parts that meet lie in the ring's place.
  const int bytes = std::max(plan.places * (Shape::kStage + 16) + sums, Shape::kSums);
  const int groups = ceil_div(args.n, kGroupRows);
  DequantSplitMaps maps;
  if (room < 2 ||
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kMaxBytes) !=
          cudaSuccess ||
      !make_row_map(maps.x, args.x, args.max_rows, args.k, Shape::kRows) ||
      !make_unit_map(maps.w, matrix.units, kUnitBytes<typename Shape::Form>, units, groups,
                     Shape::kGroups)) {
    return false;
  }
  if (Shape::kBlocks > 1) prefer_shared_memory(kernel);
  const int blocks = ceil_div(groups, Shape::kGroups) * splits;
  launch_cluster(kernel, blocks, splits, Shape::kThreads, bytes, stream, args, matrix, plan,
                 epilogue, maps);
  return true;
}

}  // namespace foretoken::cuda
