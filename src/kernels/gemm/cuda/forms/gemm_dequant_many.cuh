#pragma once
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/dequant_ring.cuh"
#include "kernels/gemm/cuda/dequant_warp.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

// Wgmma with the weight as operand A, whose codes are widened in registers, and
// x as operand B in shared memory. One warp brings both; each warpgroup takes 64 rows of the
// weight. The codes of a unit are widened while the products of the unit before are under way.
namespace foretoken::cuda {

// Rows rows of x times Warpgroups x 64 rows of the weight a block; a stage is 128 of k.
template <class Form, int Rows_, int Warpgroups_, int Places_>
struct DequantManyShape {
  static constexpr int kRows = Rows_;
  static constexpr int kPlaces = Places_;
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr int kGroups = kWarpgroups * 8;
  static constexpr int kThreads = kWarpgroups * 128 + 128;
  static constexpr int kAtomX = kRows * 128;
  static constexpr int kStageX = kUnitK / kAtomK * kAtomX;
  static constexpr int kStageW = kGroups * kUnitBytes<Form>;
  static constexpr int kStage = kStageX + (kStageW + 1023) / 1024 * 1024;
  static constexpr int kBytes = kPlaces * (kStage + 16);
  static constexpr int kReaderRegisters = kWarpgroups == 1 ? 240 : 232;
  static_assert(kBytes <= 232448);
};

template <class Form, class Shape>
struct DequantManyBlock {
  static constexpr int kUnit = kUnitBytes<Form>;

  const GemmArgs& args;
  const QuantizedMatrix& matrix;
  DequantRing ring;  // of a unit of x and then of the weight
  int units;         // along k
  int first_row;     // of x
  int first_group;   // of 8 rows of the weight

  __device__ DequantManyBlock(const GemmArgs& gemm, const QuantizedMatrix& weight, uint8_t* shared)
      : args(gemm),
        matrix(weight),
        ring(shared, reinterpret_cast<uint64_t*>(shared + Shape::kPlaces * Shape::kStage),
             Shape::kPlaces, Shape::kStage),
        units(num_units(gemm.k)),
        first_row(static_cast<int>(blockIdx.x) * Shape::kRows),
        first_group(static_cast<int>(blockIdx.y) * Shape::kGroups) {}

  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }
  __device__ int early() const { return min(Shape::kPlaces, units); }

  __device__ void load_weight(int unit, uint64_t policy) const {
    const int own = min(Shape::kGroups, ceil_div(args.n, kGroupRows) - first_group);
    arrive_expecting(ring.arrival(), own * kUnit);
    for (int g = 0; g < own; ++g) {
      copy_bulk(ring.here() + Shape::kStageX + g * kUnit,
                matrix.units + (int64_t{first_group + g} * units + unit) * kUnit, kUnit,
                ring.arrival(), policy);
    }
  }
  __device__ void load_x(int unit, const CUtensorMap& map) const {
    arrive_expecting(ring.arrival(), Shape::kStageX);
    for (int i = 0; i < 2; ++i) {
      copy_box(ring.here() + i * Shape::kAtomX, &map, unit * kUnitK + i * kAtomK, first_row,
               ring.arrival());
    }
  }

  // One thread. The weight is constant, so that its ring is filled while the op before runs.
  __device__ void bring(const CUtensorMap& map) {
    const uint64_t policy = gridDim.x == 1 ? evict_first_policy() : evict_normal_policy();
    DequantRing begin = ring;
    for (int unit = 0; unit < early(); ++unit, ring.advance()) load_weight(unit, policy);
    wait_for_previous();
    const bool has_rows = first_row < live();
    const DequantRing after = ring;
    ring = begin;
    for (int unit = 0; unit < early(); ++unit, ring.advance()) {
      if (has_rows) load_x(unit, map);
    }
    ring = after;
    if (!has_rows) return drain(begin);
    for (int unit = early(); unit < units; ++unit, ring.advance()) {
      ring.wait_empty();
      load_weight(unit, policy);
      load_x(unit, map);
    }
  }
  // What is under way must land before the block may end.
  __device__ void drain(DequantRing begin) const {
    for (int unit = 0; unit < early(); ++unit, begin.advance()) {
      arrive(begin.arrival());
      begin.wait_full();
    }
  }

  // The warpgroups.
  using Warp = DequantManyWarp<Form, Shape>;
  __device__ void multiply(Warp& warp, int index) {
    DequantRing ahead = ring;
    const auto widen_next = [&](auto& to) {
      ahead.wait_full();
      Warp::widen(to, codes_of(ahead, index));
      ahead.advance();
    };
    widen_next(warp.units[0]);
    const auto run = [&]<int Place>(int unit) {
      warp.template run_unit<Place>(shared_address(ring.here()), unit, units, [&] {
        if (unit > 0) release_before();
        if (unit + 1 < units) widen_next(warp.units[1 - Place]);
      });
      ring.advance();
    };
    for (int unit = 0; unit < units; unit += 2) {
      run.template operator()<0>(unit);
      if (unit + 1 < units) run.template operator()<1>(unit + 1);
    }
    if (units % 2 == 0) {
      warp.template finish<1>();
    } else {
      warp.template finish<0>();
    }
  }
  __device__ static const uint8_t* codes_of(const DequantRing& at, int index) {
    return at.here() + Shape::kStageX + index * 2 * kUnit;
  }
  // The products of the unit before have ended, which have read all of it.
  __device__ void release_before() const {
    if (threadIdx.x % 32 != 0) return;
    const int place = ring.place == 0 ? Shape::kPlaces - 1 : ring.place - 1;
    arrive(ring.empty + place);
  }
};

// Blocks of the same rows of the weight follow one another, so that it is read from memory once.
template <class Form, class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm_dequant_many_kernel(const __grid_constant__ GemmArgs args,
                             const __grid_constant__ QuantizedMatrix matrix, Epilogue epilogue,
                             const __grid_constant__ CUtensorMap x_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  constexpr int kReaders = Shape::kWarpgroups * 4;
  DequantManyBlock<Form, Shape> block(args, matrix, shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes.
  if (warp == 0 && elect_lane()) {
    block.ring.init(kReaders, 2);
    publish_barriers();
  }
  __syncwarp();
  let_next_start();
  __syncthreads();
  if (warp >= kReaders) {
    lower_registers<40>();
    if (warp == kReaders && elect_lane()) block.bring(x_map);
  } else {
    raise_registers<Shape::kReaderRegisters>();
    wait_for_previous();
    const int live = block.live();
    if (block.first_row < live) {
      DequantManyWarp<Form, Shape> own;
      block.multiply(own, warp);
      const int row = (block.first_group + warp * 2) * kGroupRows;  // of the weight
      own.scale_rows(matrix.row_scales, row, args.n);
      auto& tiles = reinterpret_cast<const float(&)[1][Shape::kRows / 8][4]>(own.sums);
      epilogue.take_tiles(args, live, block.first_row, row, row / kTileN, tiles);
    }
  }
#endif
}

// False when the operands do not fit.
template <class Form, class Shape, class Epilogue>
bool launch_dequant_many(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                         cudaStream_t stream) {
  const auto kernel = gemm_dequant_many_kernel<Form, Shape, Epilogue>;
  CUtensorMap map;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes) !=
          cudaSuccess ||
      !make_row_map(map, args.x, args.max_rows, args.k, Shape::kRows)) {
    return false;
  }
  const dim3 grid(ceil_div(args.max_rows, Shape::kRows),
                  ceil_div(ceil_div(args.n, kGroupRows), Shape::kGroups));
  launch_cluster(kernel, grid, 1, Shape::kThreads, Shape::kBytes, stream, args, matrix, epilogue,
                 map);
  return true;
}

}  // namespace foretoken::cuda
