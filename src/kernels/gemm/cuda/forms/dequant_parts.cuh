#pragma once
#include "kernels/cuda/mma.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"

// Parts of products with quantised weights by mma.sync: the weight is operand A, x operand B.
namespace foretoken::cuda {

// A warp's 16 rows of the weight times Rows rows of x: parts of the chain over k, which are added
// in order of k, be they this warp's or another's. With scales of units it holds the parts of Units
// of them at once, else one part.
template <class Form, int Rows, int Units>
struct DequantPartWarp {
  using Codes = typename Form::Codes;
  static constexpr int kTiles = Rows / 8;  // of rows of x
  static constexpr int kAtomX = Rows * 128;
  static constexpr bool kScaled = Form::kScalesUnits;
  static constexpr int kParts = kScaled ? Units : 1;
  static constexpr int kFloats = kParts * (4 * kTiles + (kScaled ? 2 : 0));  // of a lane's parts

  float sums[kTiles][4] = {};
  float parts[kParts][kTiles][4];
  float scales[kParts][2];  // of rows lane / 4 and lane / 4 + 8; zero where there is no unit
  uint32_t last_read;       // bits of the last word of each read since clear()

  __device__ void clear() {
    last_read = 0;
#pragma unroll
    for (int i = 0; i < kParts * kTiles * 4; ++i)
      parts[i / (kTiles * 4)][i / 4 % kTiles][i % 4] = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) scales[p][0] = scales[p][1] = 0;
  }

  // codes: the unit of the first 8 rows, the others' `stride` bytes behind; x: two atoms of 64 k in
  // the 128-byte swizzle. Unit: which one of those at once.
  template <int Unit>
  __device__ void multiply(const uint8_t* codes, int stride, uint32_t x) {
    constexpr int kPart = kScaled ? Unit : 0;
    constexpr int kBaseSteps = 8 / Form::kBases;
    uint32_t words[2][Codes::kWords], of_x[4][kTiles][4];  // of two steps
    load_codes(words[0], codes);
    load_codes(words[1], codes + stride);
    load_x(of_x, x);
    last_read |= words[0][Codes::kWords - 1] | words[1][Codes::kWords - 1] | of_x[3][kTiles - 1][3];
    typename Form::Base bases[2] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      uint32_t a[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint8_t* scales_of = codes + i * stride + Codes::kCodeBytes;
        if (step % kBaseSteps == 0) bases[i] = Form::base(scales_of, step / kBaseSteps);
        uint32_t pairs[2];
        Codes::widen(words[i], step, bases[i], pairs);
        a[i] = pairs[0];
        a[i + 2] = pairs[1];
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const uint32_t(&b)[4] = of_x[step / 2][t];
        mma_bf16(parts[kPart][t], a[0], a[1], a[2], a[3], b[step % 2 * 2], b[step % 2 * 2 + 1]);
      }
    }
    last_read |= bits_of(bases[0]) | bits_of(bases[1]);
    if constexpr (kScaled) load_scales(scales[kPart], codes, stride);
  }

  // Adds the own parts.
  __device__ void add() {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
#pragma unroll
      for (int i = 0; i < kTiles * 4; ++i) {
        add_to(sums[i / 4][i % 4], parts[p][i / 4][i % 4], kScaled ? scales[p][i % 4 / 2] : 0.0f);
      }
    }
  }

  // Leaves the own parts for another warp, kFloats * 32 floats in shared memory; adds another's.
  __device__ void put(float* slot) const {
    float* to = slot + threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
#pragma unroll
      for (int i = 0; i < kTiles * 4; ++i, to += 32) *to = parts[p][i / 4][i % 4];
      if constexpr (kScaled) {
        to[0] = scales[p][0];
        to[32] = scales[p][1];
        to += 64;
      }
    }
  }
  __device__ void add_from(const float* slot) {
    const float* from = slot + threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float* scales_of = from + kTiles * 4 * 32;
#pragma unroll
      for (int i = 0; i < kTiles * 4; ++i, from += 32) {
        add_to(sums[i / 4][i % 4], *from, kScaled ? scales_of[i % 4 / 2 * 32] : 0.0f);
      }
      if constexpr (kScaled) from += 64;
    }
  }

  // `count`: scales that there are; row: the first of the weight.
  __device__ void scale_rows(const float* row_scales, int row, int count) {
    if (row_scales == nullptr) return;
    const int own = row + threadIdx.x % 32 / 4;
    const float scale[2] = {own < count ? row_scales[own] : 0.0f,
                            own + 8 < count ? row_scales[own + 8] : 0.0f};
#pragma unroll
    for (int i = 0; i < kTiles * 4; ++i) sums[i / 4][i % 4] *= scale[i % 4 / 2];
  }

 private:
  __device__ static void add_to(float& sum, float part, float scale) {
    sum = kScaled ? fmaf(scale, part, sum) : __fadd_rn(sum, part);
  }

  __device__ static void load_x(uint32_t (&of_x)[4][kTiles][4], uint32_t x) {
    const int row = threadIdx.x % 8, chunk = threadIdx.x % 32 / 8;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        load_matrices(of_x[q][t], x + q / 2 * kAtomX + t * kAtomBytes + row * 128 +
                                      (((q % 2 * 4 + chunk) ^ row) << 4));
      }
    }
  }

  __device__ void load_scales(float (&to)[2], const uint8_t* codes, int stride) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint8_t* scales_of = codes + i * stride + Codes::kCodeBytes;
      to[i] = Form::scale(scales_of, threadIdx.x % 32 / 4);
      last_read |= __float_as_uint(to[i]);
    }
  }
};

}  // namespace foretoken::cuda
