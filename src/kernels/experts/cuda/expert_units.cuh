#pragma once
#include "kernels/experts/cuda/expert_rings.cuh"

// What the rings of expert_stream.cuh hold of weights, and how warpgroups multiply with it. A kind
// of units has kUnitK, how many k of a group of 8 columns a unit has, kUnitBytes, kRegisters, which
// a thread needs for operands, kScaleX and kScaleW, bytes that a stage has for each entry and
// column of a unit beside them, and Chain<Shape>, which computes a part: run(reader, units along
// k), then tile(i) has the sums of the i-th 64 columns, and scale(scales, row) multiplies those of
// a warp's columns by numbers of theirs, from packed row `row` on.
namespace foretoken::cuda {

// Units of bfloat16 weights: atoms, which are operand A as they lie.
struct Bf16Units {
  static constexpr int kUnitK = kAtomK;
  static constexpr int kUnitBytes = kAtomBytes;  // of a group of 8 columns
  static constexpr int kRegisters = 0;
  static constexpr int kScaleX = 0, kScaleW = 0;

  // What a warpgroup computes of a part: one chain of ascending steps of 16 k for each product.
  template <class Shape>
  struct Chain {
    using Sums = float[Shape::kEntries / 2];
    Sums sums[Shape::kTiles];

    __device__ Sums& tile(int i) { return sums[i]; }
    __device__ void scale(const float*, int64_t) {}

    __device__ void run(ExpertReader<Shape>& at, int units) {
      const int stages = units / Shape::kUnits;  // full ones
      int last_w = 0, last_x = 0;
      for (int stage = 0; stage < stages; ++stage) {
        at.wait();
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < Shape::kUnits; ++i) multiply(at, i, stage > 0 || i > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (stage > 0) at.release(last_w, last_x);
        last_w = at.w.place;
        last_x = at.x.place;
        at.advance();
      }
      wgmma_wait<0>();
      if (stages > 0) at.release(last_w, last_x);
      const int rest = units - stages * Shape::kUnits;
      if (Shape::kUnits == 1 || rest == 0) return;
      at.wait();
      for (int i = 0; i < rest; ++i) {
        wgmma_fence();
        multiply(at, i, stages > 0 || i > 0);
        wgmma_commit();
        wgmma_wait<0>();
      }
      at.release(at.w.place, at.x.place);
      at.advance();
    }

   private:
    __device__ void multiply(const ExpertReader<Shape>& at, int unit, bool add) {
      constexpr int kTile = 8 * Shape::kGroupBytes;  // 64 columns
      const uint64_t a = swizzled_operand(at.stage_w() + unit * kAtomBytes, Shape::kGroupBytes);
      const uint64_t b = swizzled_operand(at.stage_x() + unit * Shape::kAtomBytesX, kAtomBytes);
#pragma unroll
      for (int step = 0; step < kAtomK / 16; ++step) {
#pragma unroll
        for (int i = 0; i < Shape::kTiles; ++i) {
          wgmma<Shape::kEntries>(sums[i], a + (i * kTile / 16 + step * 2), b + step * 2,
                                 add || step > 0);
        }
      }
    }
  };
};

}  // namespace foretoken::cuda
