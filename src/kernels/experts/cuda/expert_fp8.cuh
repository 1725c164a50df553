#pragma once
#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_stream.cuh"
#include "kernels/gemm/cuda/fp8/fp8_wgmma.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"

namespace foretoken::cuda {

// Units of E4M3 weights for rounded rows (fp8_weight.cuh): a kind of units as of expert_units.cuh.
// A pair of codes is an element, so that a unit of 128 k is an atom of 64 of these. A product has
// the bits of launch_gemm_fp8's. ByUnit: the weight has scales of units.
template <bool ByUnit>
struct Fp8Units {
  static constexpr int kUnitK = kAtomK;
  static constexpr int kUnitBytes = kAtomBytes;
  static constexpr int kRegisters = 64;
  static constexpr int kScaleX = sizeof(float);
  static constexpr int kScaleW = ByUnit ? sizeof(float) : 0;

  template <class Shape>
  struct Chain {
    static_assert(Shape::kTiles == 1 && Shape::kUnits <= 2);
    static constexpr int kHalf = Shape::kEntries / 2;
    using Sums = float[kHalf];
    Sums sums = {};
    Sums parts[Shape::kUnits];
    UnitScales<Shape::kEntries, ByUnit> held[Shape::kUnits];

    __device__ Sums& tile(int) { return sums; }

    __device__ void scale(const float* scales, int64_t row) {
      if (scales == nullptr) return;
      const float* own = scales + row + threadIdx.x % 32 / 4;
      const float scale[2] = {own[0], own[8]};
#pragma unroll
      for (int i = 0; i < kHalf; ++i) sums[i] = __fmul_rn(sums[i], scale[i / 2 % 2]);
    }
    // By what each of `count` entries weighs.
    __device__ void scale_entries(const float* weights, const int* entries, int count) {
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const int at = i / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
        if (at < count) sums[i] = __fmul_rn(sums[i], weights[entries[at]]);
      }
    }

    // Nothing is under way between stages: the compiler would have each product wait for the one
    // before.
    __device__ void run(ExpertReader<Shape>& at, int units) {
      const uint32_t zero = unknown_zero();
      for (int unit = 0; unit < units; unit += Shape::kUnits) {
        at.wait();
        uint32_t read;
        start<0>(at);
        if (Shape::kUnits == 2 && unit + 1 < units) {
          start<Shape::kUnits - 1>(at);
          wgmma_wait<1>();
          read = add<0>();
          wgmma_wait<0>();
          read |= add<Shape::kUnits - 1>();
        } else {
          wgmma_wait<0>();
          read = add<0>();
        }
        __syncwarp();
        at.release_read(read & zero);
        at.advance();
      }
    }

   private:
    // Unit `Place` of the present stage.
    template <int Place>
    __device__ void start(const ExpertReader<Shape>& at) {
      const uint64_t w = swizzled_operand(at.stage_w() + Place * kUnitBytes, Shape::kGroupBytes);
      const uint64_t x = swizzled_operand(at.stage_x() + Place * Shape::kAtomBytesX, kAtomBytes);
      start_unit<Shape::kEntries>(parts[Place], w, x);
      held[Place].read_x(at.scales_x(Place));
      if constexpr (ByUnit) {
        held[Place].read_w(at.scales_w(Place) + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
      }
    }

    template <int Place>
    __device__ uint32_t add() {
      return held[Place].add(sums, parts[Place]);
    }
  };
};

template <bool ByUnit, int Entries, int Count, int StagesW, int StagesX, bool Tiled>
using Fp8ExpertShape = ExpertShape<ExpertCut<Fp8Units<ByUnit>, 2, 1, Entries, Count>, StagesW,
                                   StagesX, StagesW, 1, Tiled>;

// By what the rows that the step may have make of an expert's entries in the mean.
template <bool ByUnit>
bool launch_experts_fp8_of(const ExpertGemmArgs& args, const ExpertScales& scales,
                           cudaStream_t stream) {
  const int mean = mean_entries(args);
  if (args.max_rows <= 8) {
    return launch_expert_shape<Fp8ExpertShape<ByUnit, 8, 2, 4, 5, false>>(args, stream, scales);
  }
  if (mean <= 24) {
    return launch_expert_shape<Fp8ExpertShape<ByUnit, 32, 2, 4, 4, false>>(args, stream, scales);
  }
  if (mean <= 96) {
    return launch_expert_shape<Fp8ExpertShape<ByUnit, 64, 1, 8, 5, true>>(args, stream, scales);
  }
  return launch_expert_shape<Fp8ExpertShape<ByUnit, 128, 1, 6, 6, true>>(args, stream, scales);
}

}  // namespace foretoken::cuda
