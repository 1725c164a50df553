#pragma once
#include "kernels/gemm/cuda/fp8/fp8_wgmma.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"
#include "kernels/gemm/cuda/gemm_wide.cuh"

// Many rows: as gemm_wide, x is operand A, the weight operand B, and blocks of a cluster share what
// they load.
namespace foretoken::cuda {

// A WideShape whose stages have 128 k and the scales behind the codes.
template <int Warpgroups_, int N_, int ClusterX_, int ClusterW_, bool ByUnit_>
struct Fp8WideShape {
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr int kTilesX = 1;
  static constexpr int kN = N_;
  static constexpr int kTilesW = 1;
  static constexpr int kClusterX = ClusterX_;
  static constexpr int kClusterW = ClusterW_;
  static constexpr bool kByColumns = false;
  static constexpr bool kByUnit = ByUnit_;  // the weight has scales of units
  static constexpr int kCluster = kClusterX * kClusterW;
  static constexpr int kRows = kWarpgroups * 64;
  static constexpr int kGroups = kN / kGroupRows;
  static constexpr int kThreads = (kWarpgroups + 1) * 128;
  static constexpr int kProductRegisters = kWarpgroups == 2 ? 232 : 160;
  static constexpr int kLoaderRegisters = kWarpgroups == 2 ? 40 : 32;
  static constexpr int kAtoms = 1;  // of 128 codes
  static constexpr int kAtomBytesX = kRows * 128;
  static constexpr int kAtomBytesW = kGroups * kAtomBytes;
  static constexpr int kScaleBytesX = kRows * 4;
  static constexpr int kScaleBytesW = kByUnit ? kN * 4 : 0;
  static constexpr int kBytesX = kAtomBytesX + kScaleBytesX;  // that arrive
  static constexpr int kBytesW = kAtomBytesW + kScaleBytesW;
  static constexpr int kStageBytes =
      kAtomBytesX + kAtomBytesW + (kScaleBytesX + kScaleBytesW + 1023) / 1024 * 1024;
  static constexpr int kStages = std::min((232448 - 256) / kStageBytes, 12);
  static constexpr int kBytes = kStages * kStageBytes + kStages * 16;
  static_assert(kGroups % kClusterX == 0 && kRows % (8 * kClusterW) == 0 && kStages >= 3);
};

// Its loading thread.
template <class Shape>
struct Fp8WideLoader : WideLoader<Shape> {
  using Base = WideLoader<Shape>;
  const Fp8Scales& scales;

  __device__ Fp8WideLoader(const WideMaps& maps, WideRing<Shape>& ring, const Fp8Scales& of_both)
      : Base{maps, ring}, scales(of_both) {}

  // As those of the base.
  __device__ void start(const WideWork<Shape>& work) {
    prefetch_map(&this->maps.x);
    prefetch_map(&this->maps.w);
    this->policy = work.tiles.num_x == 1 ? evict_first_policy() : evict_normal_policy();
    for (int i = 0; i < work.early; ++i) {
      expect_bytes(this->ring.full + i, Shape::kBytesW);
      load_weight(work, work.tiles.at(work.first), i);
      this->ring.at.advance();
    }
    this->ring.at = {};
  }
  __device__ void run(const WideWork<Shape>& work) const {
    auto& ring = this->ring;
    for (int i = 0; i < work.dropped; ++i) {
      arrive(ring.full + i);
      ring.at.advance();
    }
    for (int i = 0; i < work.early; ++i) {
      arrive_expecting(ring.full + i, Shape::kBytesX);
      load_x(work, work.tiles.at(work.first), i);
      ring.at.advance();
    }
    int stage = work.early;
    for (int t = work.first; t < work.count; t += work.step) {
      const int2 tile = work.tiles.at(t);
      for (; stage < work.num_stages; ++stage) {
        wait_barrier(ring.empty + ring.at.place, ring.at.parity ^ 1);
        arrive_expecting(ring.full + ring.at.place, Shape::kBytesX + Shape::kBytesW);
        load_weight(work, tile, stage);
        load_x(work, tile, stage);
        ring.at.advance();
      }
      stage = 0;
    }
  }

  // In a stage of the ring.
  __device__ static uint8_t* x_scales(const WideRing<Shape>& ring) {
    return ring.w() + Shape::kAtomBytesW;
  }
  __device__ static uint8_t* w_scales(const WideRing<Shape>& ring) {
    return x_scales(ring) + Shape::kScaleBytesX;
  }

 private:
  __device__ void load_weight(const WideWork<Shape>& work, int2 tile, int stage) const {
    Base::load_weight(work, tile, stage);
    if constexpr (Shape::kByUnit) {
      const float* from = scales.of_units + int64_t{stage} * scales.w_stride;
      copy_bulk(w_scales(this->ring), from + work.column(tile) * Shape::kN, Shape::kScaleBytesW,
                this->ring.full + this->ring.at.place, evict_normal_policy());
    }
  }
  __device__ void load_x(const WideWork<Shape>& work, int2 tile, int stage) const {
    Base::load_x(work, tile, stage);
    const float* from = scales.of_x + int64_t{stage} * scales.x_stride;
    copy_bulk(x_scales(this->ring), from + work.first_row(tile), Shape::kScaleBytesX,
              this->ring.full + this->ring.at.place, evict_normal_policy());
  }
};

// A multiplying warpgroup.
template <class Shape>
struct Fp8WideProducts {
  static constexpr int kHalf = Shape::kN / 2;
  using Sums = float[kHalf];
  WideRing<Shape>& ring;
  const WideWork<Shape>& work;
  const Fp8Scales& scales;

  template <class Epilogue>
  __device__ void run(const GemmArgs& args, const Epilogue& epilogue) const {
    const int warpgroup_row = static_cast<int>(threadIdx.x) / 128 * 64;
    skip(work.dropped);
    for (int t = work.first; t < work.count; t += work.step) {
      const int2 tile = work.tiles.at(t);
      const int row = work.first_row(tile) + warpgroup_row;
      if (row >= work.live) {
        skip(work.num_stages);
        continue;
      }
      Sums sums = {};
      multiply(sums);
      const int column = work.column(tile);
      scale_columns(sums, column * Shape::kN);
      epilogue.take_rows(args, work.live, row, column * Shape::kN, column, sums);
    }
  }

 private:
  // Tells every block that fills this stage of ours that this warp has read it; `held` is zero.
  __device__ void release(uint32_t held) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    uint64_t* const barrier = ring.empty + ring.at.place + held;
    if constexpr (Shape::kCluster == 1) {
      if (lane == 0) arrive(barrier);
    } else if (lane < Shape::kClusterX) {
      arrive_at(barrier, work.rank_w * Shape::kClusterX + lane);
    } else if (lane < Shape::kClusterX + Shape::kClusterW - 1) {
      const int other = lane - Shape::kClusterX;
      const int column = other < work.rank_w ? other : other + 1;
      arrive_at(barrier, column * Shape::kClusterX + work.rank_x);
    }
  }

  __device__ void skip(int num_stages) const {
    for (int i = 0; i < num_stages; ++i) {
      wait_barrier(ring.full + ring.at.place, ring.at.parity);
      release(0);
      ring.at.advance();
    }
  }

  __device__ void multiply(Sums& sums) const {
    const uint32_t zero = unknown_zero();
    const int own = static_cast<int>(threadIdx.x) / 128 * 64;  // row of the block's
    const int row = own + static_cast<int>(threadIdx.x) % 128 / 32 * 16 +
                    static_cast<int>(threadIdx.x) % 32 / 4;
    Sums part;
    for (int i = 0; i < work.num_stages; ++i, ring.at.advance()) {
      wait_barrier(ring.full + ring.at.place, ring.at.parity);
      const uint64_t x = swizzled_operand(shared_address(ring.x(0)) + own * 128, kAtomBytes);
      const uint64_t w = swizzled_operand(shared_address(ring.w()), kAtomBytes);
      start_unit<Shape::kN>(part, x, w);
      const auto* of_x = reinterpret_cast<const float*>(Fp8WideLoader<Shape>::x_scales(ring));
      const float scale[2] = {of_x[row], of_x[row + 8]};
      const uint32_t read = __float_as_uint(scale[0]) | __float_as_uint(scale[1]);
      wgmma_wait<0>();
      pin_registers(part);
      if constexpr (Shape::kByUnit) {
        const uint32_t more = add_by_unit(sums, part, scale);
        __syncwarp();
        release((read | more) & zero);
      } else {
        __syncwarp();
        release(read & zero);
#pragma unroll
        for (int j = 0; j < kHalf; ++j) sums[j] = fmaf(scale[j / 2 % 2], part[j], sums[j]);
      }
    }
  }
  __device__ uint32_t add_by_unit(Sums& sums, const Sums& part, const float (&scale)[2]) const {
    const auto* of_w = reinterpret_cast<const float2*>(Fp8WideLoader<Shape>::w_scales(ring));
    uint32_t read = 0;
#pragma unroll
    for (int j = 0; j < kHalf / 4; ++j) {
      const float2 own = of_w[j * 4 + threadIdx.x % 4];
      read |= __float_as_uint(own.y);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float both = __fmul_rn(scale[i / 2], i % 2 == 0 ? own.x : own.y);
        sums[j * 4 + i] = fmaf(both, part[j * 4 + i], sums[j * 4 + i]);
      }
    }
    return read;
  }

  // n: the first row of the weight.
  __device__ void scale_columns(Sums& sums, int n) const {
    if constexpr (!Shape::kByUnit) {
      const auto* of_w = reinterpret_cast<const float2*>(scales.of_rows + n);
#pragma unroll
      for (int j = 0; j < kHalf / 4; ++j) {
        const float2 own = of_w[j * 4 + threadIdx.x % 4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[j * 4 + i] = __fmul_rn(sums[j * 4 + i], i % 2 == 0 ? own.x : own.y);
        }
      }
    }
  }
};

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm_fp8_wide_kernel(GemmArgs args, Fp8Scales scales, Epilogue epilogue,
                         const __grid_constant__ WideMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  WideRing<Shape> ring(shared);
  WideWork<Shape> work(args);
  Fp8WideLoader<Shape> loader(maps, ring, scales);
  constexpr int kLoading = Shape::kWarpgroups * 128;
  if (threadIdx.x == 0) ring.init();
  if constexpr (Shape::kCluster > 1) sync_cluster();
  __syncthreads();
  // The weight is constant: its first part is fetched while the op before still runs.
  if (threadIdx.x == kLoading) loader.start(work);
  wait_for_previous(args.frees_next != 0);
  work.set_live(live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows));
  if (threadIdx.x < kLoading) {
    raise_registers<Shape::kProductRegisters>();
    Fp8WideProducts<Shape>{ring, work, scales}.run(args, epilogue);
  } else {
    lower_registers<Shape::kLoaderRegisters>();
    if (threadIdx.x == kLoading) loader.run(work);
  }
  // A block stays while others of its cluster may still send to it.
  __syncwarp();
  if constexpr (Shape::kCluster > 1) sync_cluster();
#endif
}

// False when the device or the driver cannot run it.
template <class Shape, class Epilogue>
bool launch_fp8_wide(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                     cudaStream_t stream) {
  const auto kernel = gemm_fp8_wide_kernel<Shape, Epilogue>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes) !=
      cudaSuccess) {
    return false;
  }
  // To maps and work a pair of codes is an element.
  GemmArgs pairs = args;
  pairs.k = num_units(args.k) * kAtomK;
  WideMaps maps;
  if (!make_row_map(maps.x, args.x, args.max_rows, pairs.k, Shape::kRows / Shape::kClusterW) ||
      !make_weight_map(maps.w, matrix.units, args.n, pairs.k, 1,
                       Shape::kGroups / Shape::kClusterX)) {
    return false;
  }
  const int tiles = ceil_div(args.max_rows, Shape::kRows * Shape::kClusterX) *
                    ceil_div(args.n, Shape::kN * Shape::kClusterW);
  const int num_clusters = std::min(tiles, resident_clusters(Shape::kCluster));
  launch_cluster(kernel, num_clusters * Shape::kCluster, Shape::kCluster, Shape::kThreads,
                 Shape::kBytes, stream, pairs, fp8_scales(args, matrix), epilogue, maps);
  return true;
}

}  // namespace foretoken::cuda
