#pragma once
#include "kernels/gemm/cuda/dequant_warp.cuh"

// A warp's 16 rows of a quantised weight times up to 64 rows of x, by wgmma with the weight as
// operand A in registers, for forms without scales of units.
namespace foretoken::cuda {

// Half a unit is multiplied while the next half is widened: as few registers as let two or four
// warpgroups have a multiprocessor.
template <class Shape>
struct DequantSplitWarp {
  using Form = typename Shape::Form;
  using Codes = typename Form::Codes;
  static constexpr int kTiles = Shape::kTiles;

  float c[Shape::kRows / 2];
  uint32_t a[2][4][4];
  uint32_t words[2][Codes::kWords];  // of rows lane / 4 and lane / 4 + 8
  KeptBases<Form> bases[2];

  // low: the unit of the first 8 rows, right before that of the others.
  __device__ void load(const uint8_t* low) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint8_t* unit = low + i * kUnitBytes<Form>;
      load_codes(words[i], unit);
      bases[i].load(unit + Codes::kCodeBytes);
    }
  }

  template <int Half>
  __device__ void widen() {
    constexpr int kBaseSteps = 8 / Form::kBases;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      typename Form::Base base{};
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const int step = Half * 4 + s;
        if (s == 0 || step % kBaseSteps == 0) base = bases[i].base(step / kBaseSteps);
        uint32_t b[2];
        Codes::widen(words[i], step, base, b);
        a[Half][s][i] = b[0];
        a[Half][s][i + 2] = b[1];
      }
    }
  }

  // Starts the products of half a unit; x: an address of the unit's two atoms of 64 k.
  template <int Half>
  __device__ void start(uint32_t x, bool add) {
    wgmma_fence();
    const uint64_t of_x = swizzled_operand(x + Half * Shape::kAtomX, kAtomBytes);
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      wgmma_registers<Shape::kRows>(c, a[Half][s], of_x + s * 2, add || s > 0);
    }
    wgmma_commit();
  }

  // Adds a part that has ended to sums in shared memory: of each lane four behind one another, of
  // kTiles slots.
  __device__ void add_to(float4* sums, bool first) {
    pin_registers(c);
    float4* own = sums + threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t, own += 32) {
      const float4 before = first ? float4{} : *own;
      *own = sum_of(before, {c[t * 4], c[t * 4 + 1], c[t * 4 + 2], c[t * 4 + 3]});
    }
  }

  __device__ static float4 sum_of(const float4& a, const float4& b) {
    return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
  }
};

}  // namespace foretoken::cuda
