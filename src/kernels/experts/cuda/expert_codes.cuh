#pragma once
#include "kernels/experts/cuda/expert_rings.cuh"
#include "kernels/gemm/cuda/dequant_warp.cuh"

namespace foretoken::cuda {

// Units of quantised weights, whose codes become operand A in registers: a kind of units as of
// expert_units.cuh. A product has the bits of launch_gemm_dequant's.
template <class Form>
struct CodeUnits {
  static constexpr int kUnitK = cuda::kUnitK;
  static constexpr int kUnitBytes = cuda::kUnitBytes<Form>;
  static constexpr int kRegisters = 72;
  static constexpr int kScaleX = 0, kScaleW = 0;

  template <class Shape>
  struct Chain {
    static_assert(Shape::kTiles == 1);
    static constexpr int kUnits = Shape::kUnits;  // of a stage
    struct Rows {
      static constexpr int kRows = Shape::kEntries;
      static constexpr int kAtomX = Shape::kAtomBytesX;
    };
    using Warp = DequantManyWarp<Form, Rows>;
    using Sums = float[Shape::kEntries / 2];
    Warp warp;

    __device__ Sums& tile(int) { return warp.sums; }
    __device__ void scale(const float* scales, int64_t row) {
      if (scales != nullptr) warp.scale_rows(scales + row, 0, kPairRows);
    }

    // The codes of a unit are widened while the products of the unit before are under way.
    __device__ void run(ExpertReader<Shape>& at, int units) {
      auto ahead = at.w;
      const auto widen = [&](auto& to, int unit) {
        const int place = unit % kUnits;
        if (place == 0) at.rings.w.wait_full(ahead);
        Warp::widen(
            to,
            at.rings.w.at(ahead) + threadIdx.x / 32 * 2 * Shape::kGroupBytes + place * kUnitBytes,
            Shape::kGroupBytes);
        if (place == kUnits - 1) ahead.advance();
      };
      widen(warp.units[0], 0);
      const auto run_at = [&]<int Place>(int unit) {
        const int place = unit % kUnits;
        if (place == 0) at.wait();
        const uint32_t x = at.stage_x() + place * (kUnitK / kAtomK) * Shape::kAtomBytesX;
        warp.template run_unit<Place>(x, unit, units, [&] {
          if (unit > 0 && place == 0) at.release_before();
          if (unit + 1 < units) widen(warp.units[1 - Place], unit + 1);
        });
        if (place == kUnits - 1 || unit + 1 == units) at.advance();
      };
      for (int unit = 0; unit < units; unit += 2) {
        run_at.template operator()<0>(unit);
        if (unit + 1 < units) run_at.template operator()<1>(unit + 1);
      }
      if (units % 2 == 0) {
        warp.template finish<1>();
      } else {
        warp.template finish<0>();
      }
      at.release_before();
    }
  };
};

}  // namespace foretoken::cuda
