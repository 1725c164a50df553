#pragma once
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/dequant_ring.cuh"
#include "kernels/gemm/cuda/fp8/fp8_wgmma.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"
#include "kernels/gemm/cuda/gemm_epilogue.cuh"

// The weight as operand A, rows of x as operand B, both from shared memory. One thread brings the
// weight and one x, each warpgroup takes 64 rows of the weight.
namespace foretoken::cuda {

// Rows rows of x, at most 64, times Warpgroups x 64 rows of the weight a block. A stage is of two
// units of k, since each costs the threads that copy some hundred cycles.
template <int Rows_, int Warpgroups_, bool ByUnit_>
struct Fp8FewShape {
  static constexpr int kRows = Rows_;
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr bool kByUnit = ByUnit_;  // the weight has scales of units
  static constexpr int kUnits = 2;
  static constexpr int kRowsW = kWarpgroups * 64;
  static constexpr int kThreads = kWarpgroups * 128 + 64;
  static constexpr int kBytesW = kUnits * kRowsW * 128;
  static constexpr int kUnitX = kRows * 128;
  static constexpr int kBytesX = kUnits * kUnitX;
  static constexpr int kScalesX = kRows * 4;  // bytes, of a unit
  static constexpr int kScalesW = kByUnit ? kRowsW * 4 : 0;
  static constexpr int kStage =
      kBytesW + kBytesX + (kUnits * (kScalesX + kScalesW) + 1023) / 1024 * 1024;
  static constexpr int kMaxBytes = 232448;
  static constexpr int kPlaces = kMaxBytes / (kStage + 16);
  static constexpr int kBytes = kPlaces * (kStage + 16);
  static_assert(kRows <= 64);
};

struct Fp8Maps {
  CUtensorMap x;
  CUtensorMap w;
};

template <class Shape>
struct Fp8FewBlock {
  const GemmArgs& args;
  const Fp8Scales& scales;
  DequantRing ring;  // of codes of the weight, of x, scales of x, of the weight
  int units;
  int stages;
  int first_row;    // of x
  int first_row_w;  // of the weight

  __device__ Fp8FewBlock(const GemmArgs& gemm, const Fp8Scales& of_both, uint8_t* shared)
      : args(gemm),
        scales(of_both),
        ring(shared, reinterpret_cast<uint64_t*>(shared + Shape::kPlaces * Shape::kStage),
             Shape::kPlaces, Shape::kStage),
        units(num_units(gemm.k)),
        stages(ceil_div(units, Shape::kUnits)),
        first_row(static_cast<int>(blockIdx.x) * Shape::kRows),
        first_row_w(static_cast<int>(blockIdx.y) * Shape::kRowsW) {}

  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }
  // Of a stage that begins with that unit.
  __device__ int units_from(int unit) const { return min(Shape::kUnits, units - unit); }
  __device__ static uint8_t* x_of(const DequantRing& at, int unit) {
    return at.here() + Shape::kBytesW + unit * Shape::kUnitX;
  }
  __device__ static uint8_t* x_scales_of(const DequantRing& at, int unit) {
    return x_of(at, Shape::kUnits) + unit * Shape::kScalesX;
  }
  __device__ static uint8_t* w_scales_of(const DequantRing& at, int unit) {
    return x_scales_of(at, Shape::kUnits) + unit * Shape::kScalesW;
  }

  // What lies beyond the edges arrives as zeros, but for scales.
  __device__ void load_weight(int stage, const CUtensorMap& map, uint64_t policy) const {
    const int unit = stage * Shape::kUnits, count = units_from(unit);
    arrive_expecting(ring.arrival(), Shape::kBytesW + count * Shape::kScalesW);
    copy_box(ring.here(), &map, int3{0, unit, first_row_w / kGroupRows}, ring.arrival(), policy);
    if constexpr (Shape::kByUnit) {
      for (int i = 0; i < count; ++i) {
        const float* from = scales.of_units + int64_t{unit + i} * scales.w_stride + first_row_w;
        copy_bulk(w_scales_of(ring, i), from, Shape::kScalesW, ring.arrival(), policy);
      }
    }
  }
  __device__ void load_x(int stage, const CUtensorMap& map, uint64_t policy) const {
    const int unit = stage * Shape::kUnits, count = units_from(unit);
    arrive_expecting(ring.arrival(), count * (Shape::kUnitX + Shape::kScalesX));
    for (int i = 0; i < count; ++i) {
      copy_box(x_of(ring, i), &map, (unit + i) * kAtomK, first_row, ring.arrival());
      const float* from = scales.of_x + int64_t{unit + i} * scales.x_stride + first_row;
      copy_bulk(x_scales_of(ring, i), from, Shape::kScalesX, ring.arrival(), policy);
    }
  }

  // One thread. The weight is constant, so that its ring is filled while the op before runs.
  __device__ void bring_weight(const CUtensorMap& map) {
    const uint64_t policy = gridDim.x == 1 ? evict_first_policy() : evict_normal_policy();
    const DequantRing begin = ring;
    const int early = min(Shape::kPlaces, stages);
    for (int stage = 0; stage < early; ++stage, ring.advance()) load_weight(stage, map, policy);
    wait_for_previous(args.frees_next != 0);
    if (first_row >= live()) return drain(begin, early);
    for (int stage = early; stage < stages; ++stage, ring.advance()) {
      ring.wait_empty();
      load_weight(stage, map, policy);
    }
  }
  // What is under way must land before the block may end.
  __device__ static void drain(DequantRing at, int count) {
    for (int i = 0; i < count; ++i, at.advance()) {
      arrive(at.arrival());
      at.wait_full();
    }
  }

  // Another thread.
  __device__ void bring_x(const CUtensorMap& map) {
    wait_for_previous(args.frees_next != 0);
    if (first_row >= live()) return;
    const uint64_t policy = evict_normal_policy();
    for (int stage = 0; stage < stages; ++stage, ring.advance()) {
      ring.wait_empty();
      load_x(stage, map, policy);
    }
  }
};

// A warpgroup's 64 rows of the weight.
template <class Shape>
struct Fp8FewProducts {
  static constexpr int kHalf = Shape::kRows / 2;
  Fp8FewBlock<Shape>& block;
  int row;  // this lane's first row of the weight, within the block
  float sums[kHalf] = {};
  float parts[2][kHalf];
  UnitScales<Shape::kRows, Shape::kByUnit> held[2];

  // Unit `Place` of the stage in `at`, which is there.
  template <int Place>
  __device__ void start(const DequantRing& at, int warpgroup) {
    constexpr int kGroupBytes = Shape::kUnits * kAtomBytes;
    const uint32_t rows = shared_address(at.here()) + warpgroup * 8 * kGroupBytes;
    const uint64_t w = swizzled_operand(rows + Place * kAtomBytes, kGroupBytes);
    const uint64_t x = swizzled_operand(shared_address(block.x_of(at, Place)), kAtomBytes);
    start_unit<Shape::kRows>(parts[Place], w, x);
    held[Place].read_x(reinterpret_cast<const float*>(block.x_scales_of(at, Place)));
    if constexpr (Shape::kByUnit) {
      held[Place].read_w(reinterpret_cast<const float*>(block.w_scales_of(at, Place)) + row);
    }
  }

  template <int Place>
  __device__ uint32_t add() {
    return held[Place].add(sums, parts[Place]);
  }

  // Nothing is under way between stages: the compiler would have each product wait for the one
  // before.
  __device__ void run(int warpgroup) {
    const uint32_t zero = unknown_zero();
    DequantRing& at = block.ring;
    for (int unit = 0; unit < block.units; unit += 2, at.advance()) {
      at.wait_full();
      uint32_t read;
      start<0>(at, warpgroup);
      if (unit + 1 < block.units) {
        start<1>(at, warpgroup);
        wgmma_wait<1>();
        read = add<0>();
        wgmma_wait<0>();
        read |= add<1>();
      } else {
        wgmma_wait<0>();
        read = add<0>();
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) at.release(read & zero);
    }
  }

  __device__ void scale_rows(const float* of_rows, int first) {
    if constexpr (!Shape::kByUnit) {
      const float scale[2] = {of_rows[first + row], of_rows[first + row + 8]};
#pragma unroll
      for (int i = 0; i < kHalf; ++i) sums[i] = __fmul_rn(sums[i], scale[i / 2 % 2]);
    }
  }
};

// Blocks of the same rows of the weight follow one another, so that it is read from memory once.
template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm_fp8_few_kernel(const __grid_constant__ GemmArgs args,
                        const __grid_constant__ Fp8Scales scales, Epilogue epilogue,
                        const __grid_constant__ Fp8Maps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  constexpr int kReaders = Shape::kWarpgroups * 4;
  Fp8FewBlock<Shape> block(args, scales, shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes.
  if (warp == 0 && elect_lane()) {
    block.ring.init(kReaders, 2);
    publish_barriers();
  }
  __syncwarp();
  if (args.frees_next == 0) let_next_start();
  __syncthreads();
  if (warp == kReaders) {
    if (elect_lane()) block.bring_weight(maps.w);
    return;
  }
  if (warp > kReaders) {
    if (elect_lane()) block.bring_x(maps.x);
    return;
  }
  wait_for_previous(args.frees_next != 0);
  const int live = block.live();
  if (block.first_row >= live) return;
  Fp8FewProducts<Shape> own{block, warp * 16 + static_cast<int>(threadIdx.x) % 32 / 4};
  own.run(warp / 4);
  own.scale_rows(scales.of_rows, block.first_row_w);
  const int row = block.first_row_w + warp * 16;  // of the weight
  auto& tiles = reinterpret_cast<const float(&)[1][Shape::kRows / 8][4]>(own.sums);
  epilogue.take_tiles(args, live, block.first_row, row, row / kTileN, tiles);
#endif
}

// False when the device or the driver cannot run it.
template <class Shape, class Epilogue>
bool launch_fp8_few(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                    cudaStream_t stream) {
  const auto kernel = gemm_fp8_few_kernel<Shape, Epilogue>;
  const int64_t pairs = int64_t{num_units(args.k)} * kAtomK;  // of codes in a row
  Fp8Maps maps;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes) !=
          cudaSuccess ||
      !make_row_map(maps.x, args.x, args.max_rows, pairs, Shape::kRows) ||
      !make_weight_map(maps.w, matrix.units, args.n, pairs, Shape::kUnits,
                       Shape::kRowsW / kGroupRows)) {
    return false;
  }
  const dim3 grid(ceil_div(args.max_rows, Shape::kRows), ceil_div(args.n, Shape::kRowsW));
  launch_cluster(kernel, grid, 1, Shape::kThreads, Shape::kBytes, stream, args,
                 fp8_scales(args, matrix), epilogue, maps);
  return true;
}

}  // namespace foretoken::cuda
