#pragma once
#include "kernels/cuda/wgmma.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"

// Products of a warpgroup whose operand A is a quantised weight, widened in registers.
namespace foretoken::cuda {

// c (+)= a * b of a warpgroup as of wgmma, a in registers: of each warp 16 rows, as mma.sync has
// them.
template <int N>
__device__ void wgmma_registers(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b, bool add);

#define FT_WGMMA_REGISTER_A(n, a0, a1, a2, a3, b_at, add_at)                                     \
  template <>                                                                                    \
  __device__ inline void wgmma_registers<n>(float(&c)[n / 2], const uint32_t(&a)[4], uint64_t b, \
                                            bool add) {                                          \
    FT_WGMMA_OWN(n, "k16.f32.bf16.bf16", "1, 1, 0", a0, a1, a2, a3, b_at, add_at);               \
  }

FT_WGMMA_REGISTER_A(8, 4, 5, 6, 7, 8, 9)
FT_WGMMA_REGISTER_A(16, 8, 9, 10, 11, 12, 13)
FT_WGMMA_REGISTER_A(32, 16, 17, 18, 19, 20, 21)
FT_WGMMA_REGISTER_A(64, 32, 33, 34, 35, 36, 37)
FT_WGMMA_REGISTER_A(128, 64, 65, 66, 67, 68, 69)

#undef FT_WGMMA_REGISTER_A

// A warp's 16 rows of the weight times Shape::kRows rows of x, which lie in atoms of Shape::kAtomX
// bytes for 64 k: an instance for each warp of a warpgroup. Units of k come one after the other by
// run_unit, in units[0] and units[1] in turns; then finish.
template <class Form, class Shape>
struct DequantManyWarp {
  using Codes = typename Form::Codes;
  static constexpr int kHalf = Shape::kRows / 2;
  // Whether products of a part begin while those of the part before are under way.
  static constexpr bool kTwoParts = Form::kScalesUnits && Shape::kRows <= 64;
  static constexpr int kProducts = kTwoParts ? 2 : 1;

  struct Operands {
    uint32_t a[8][4];
    float scales[2];
  };

  float sums[kHalf] = {};
  float products[kProducts][kHalf];
  Operands units[2];
  int part_end = 0;  // of the part under way, without scales of units

  // low: the unit of the warp's first 8 rows; those of the others `stride` bytes behind.
  __device__ static void widen(Operands& to, const uint8_t* low, int stride = kUnitBytes<Form>) {
    constexpr int kBaseSteps = 8 / Form::kBases;
    const int row = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint8_t* unit = low + i * stride;
      const uint8_t* scales = unit + Codes::kCodeBytes;
      uint32_t words[Codes::kWords];
      load_codes(words, unit);
      typename Form::Base base{};
#pragma unroll
      for (int step = 0; step < 8; ++step) {
        if (step % kBaseSteps == 0) base = Form::base(scales, step / kBaseSteps);
        uint32_t b[2];
        Codes::widen(words, step, base, b);
        to.a[step][i] = b[0];
        to.a[step][i + 2] = b[1];
      }
      if constexpr (Form::kScalesUnits) to.scales[i] = Form::scale(scales, row);
    }
  }

  // Starts the products of a unit.
  __device__ static void start(float (&c)[kHalf], const Operands& unit, uint32_t x, bool add) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      const uint64_t of_x = swizzled_operand(x + step / 4 * Shape::kAtomX, kAtomBytes);
      wgmma_registers<Shape::kRows>(c, unit.a[step], of_x + step % 4 * 2, add || step > 0);
    }
    wgmma_commit();
  }

  __device__ void add_part(const float (&part)[kHalf], const float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) sums[i] = fmaf(scale[i / 2 % 2], part[i], sums[i]);
  }

  // Without scales of units: a unit of a part of several. between() as of run_part.
  template <int Place, class Between>
  __device__ void run_link(uint32_t x, int unit, int units_in_all, const Between& between) {
    const int begin = part_end;
    if (unit == begin) part_end += part_units(units_in_all);
    start(products[0], units[Place], x, unit != begin);
    wgmma_wait<1>();
    between();
    if (unit + 1 < part_end && unit + 1 < units_in_all) return;
    wgmma_wait<0>();
    pin_registers(products[0]);
#pragma unroll
    for (int i = 0; i < kHalf; ++i) sums[i] = __fadd_rn(sums[i], products[0][i]);
  }

  // The unit in units[Place], which is a part. between(): once no products but those of this part
  // are under way, whose operands stay.
  template <int Place, class Between>
  __device__ void run_part(uint32_t x, bool first, const Between& between) {
    if constexpr (kTwoParts) {
      start(products[Place], units[Place], x, false);
      if (!first) {
        wgmma_wait<1>();
        pin_registers(products[1 - Place]);
        add_part(products[1 - Place], units[1 - Place].scales);
      }
      between();
    } else {
      start(products[0], units[Place], x, false);
      between();
      wgmma_wait<0>();
      pin_registers(products[0]);
      add_part(products[0], units[Place].scales);
    }
  }

  // Unit `unit` of `units_in_all` along k.
  template <int Place, class Between>
  __device__ void run_unit(uint32_t x, int unit, int units_in_all, const Between& between) {
    if constexpr (Form::kScalesUnits) {
      run_part<Place>(x, unit == 0, between);
    } else {
      run_link<Place>(x, unit, units_in_all, between);
    }
  }

  template <int Place>
  __device__ void finish() {
    wgmma_wait<0>();
    if constexpr (kTwoParts) {
      pin_registers(products[Place]);
      add_part(products[Place], units[Place].scales);
    }
  }

  __device__ void scale_rows(const float* row_scales, int row, int count) {
    if (row_scales == nullptr) return;
    const int own = row + threadIdx.x % 32 / 4;
    const float scale[2] = {own < count ? row_scales[own] : 0.0f,
                            own + 8 < count ? row_scales[own + 8] : 0.0f};
#pragma unroll
    for (int i = 0; i < kHalf; ++i) sums[i] *= scale[i / 2 % 2];
  }
};

}  // namespace foretoken::cuda
