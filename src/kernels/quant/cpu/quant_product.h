#pragma once
#include <cstdint>

#include "kernels/quant/cpu/quant_kernels.h"

// The products of quantised weights for one instruction set: included by the files of each, which
// name the vectors that they have. Everything is internal to the file, so that no linker merges
// code of two instruction sets.
namespace foretoken::cpu {
namespace {

#define FT_QUANT_INLINE inline __attribute__((always_inline))

// A scale for every column and, where kinds have them, what is to be subtracted for every one of x.
template <class V>
struct Scales {
  typename V::Floats scale;
  typename V::Floats minimum;
};

// V: kLanes columns at once, from `lane` on.
//   Floats, Ints, Codes: a float, an int32 or four codes for each of these columns
//   low4, high4: the halves of bytes; with_bits_4_and_5(four, two, i): four | (two >> 2 i & 3) << 4
//   dot<bits>(sums, codes, x): sums + codes . x, of four signed bytes of x
//   halves, bytes, signed_bytes: scales as floats
//   multiply_add(a, b, c) = a * b + c and subtract_product(c, a, b) = c - a * b, rounded once
template <class V, int kBits>
FT_QUANT_INLINE typename V::Codes unpack(const uint8_t* step, int vector, int lane) {
  const uint8_t* at = step + 4 * lane;
  if constexpr (kBits == 8) return V::load_codes(at + 64 * vector);
  const typename V::Codes bytes = V::load_codes(at + 64 * (vector % 4));
  const typename V::Codes four = vector < 4 ? V::low4(bytes) : V::high4(bytes);
  if constexpr (kBits == 4) return four;
  const typename V::Codes two = V::load_codes(at + 256 + 64 * (vector / 4));
  return V::with_bits_4_and_5(four, two, vector % 4);
}

// The sums of `kVectors` vectors from `first` on for each row, less the middle of the codes.
template <class V, int kBits, GroupScale kScale, int kRows, int kVectors>
FT_QUANT_INLINE void dot_rows(const uint8_t* step, int first, int lane, const QuantStep* x,
                              typename V::Ints (&sums)[kRows]) {
  for (int r = 0; r < kRows; ++r) {
    if constexpr (kScale == GroupScale::kHalf) {
      sums[r] = V::ints(kBits == 8 ? x[r].minus_middle8 : x[r].minus_middle4);
    } else if constexpr (kScale == GroupScale::kSuperSigned) {
      sums[r] = V::ints(x[r].minus_middle6[first / 4]);
    } else {
      sums[r] = V::ints(0);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) {
    const typename V::Codes codes = unpack<V, kBits>(step, first + j, lane);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r] = V::template dot<kBits>(sums[r], codes, x[r].codes + 4 * (first + j));
    }
  }
}

// Groups of at least 32: one scale for the step.
template <class V, int kBits, GroupScale kScale, int kRows>
FT_QUANT_INLINE void add_step(const uint8_t* step, const Scales<V>& scales, int lane,
                              const QuantStep* x, typename V::Floats (&sums)[kRows]) {
  typename V::Ints dots[kRows];
  dot_rows<V, kBits, kScale, kRows, 8>(step, 0, lane, x, dots);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto scale = V::multiply(scales.scale, V::floats(x[r].scale));
    sums[r] = V::multiply_add(V::to_floats(dots[r]), scale, sums[r]);
    if constexpr (kScale != GroupScale::kHalf) {
      sums[r] = V::subtract_product(sums[r], scales.minimum, V::floats(x[r].scaled_sum));
    }
  }
}

// A half for each group, and with kHalfAndZero a zero behind the halves of all columns.
template <class V, int kBits, GroupScale kScale, int kRows>
void multiply_groups(const QuantBlock& block, const QuantStep* x, int64_t num_steps,
                     int steps_per_group, float* tile) {
  constexpr bool kHasZero = kScale == GroupScale::kHalfAndZero;
  constexpr int kScaleBytes = (kHasZero ? 3 : 2) * kQuantCols;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += steps_per_group, scales += kScaleBytes) {
      Scales<V> group{V::halves(scales + 2 * lane), V::floats(0)};
      if constexpr (kHasZero) {
        group.minimum = V::multiply(group.scale, V::bytes(scales + 2 * kQuantCols + lane));
      }
      for (int64_t s = i; s < i + steps_per_group; ++s) {
        const uint8_t* step = block.codes + s * (64 * kBits);
        V::prefetch(step, 64 * kBits);
        add_step<V, kBits, kScale, kRows>(step, group, lane, x + s * kRows, sums);
      }
    }
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

template <class V, int kBits, int kRows>
void multiply_super(const QuantBlock& block, const QuantStep* x, int64_t num_steps, int,
                    float* tile) {
  constexpr int kSteps = kSuperGroup / kQuantStep;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += kSteps, scales += (4 + 2 * kSteps) * kQuantCols) {
      const auto scale = V::halves(scales + 2 * lane);
      const auto minimum = V::halves(scales + 2 * kQuantCols + 2 * lane);
      for (int s = 0; s < kSteps; ++s) {
        const uint8_t* step = block.codes + (i + s) * (64 * kBits);
        const uint8_t* bytes = scales + (4 + 2 * s) * kQuantCols + lane;
        V::prefetch(step, 64 * kBits);
        const Scales<V> group{V::multiply(scale, V::bytes(bytes)),
                              V::multiply(minimum, V::bytes(bytes + kQuantCols))};
        add_step<V, kBits, GroupScale::kSuper, kRows>(step, group, lane, x + (i + s) * kRows, sums);
      }
    }
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

// Groups of sixteen: two in a step.
template <class V, int kBits, int kRows>
void multiply_super_signed(const QuantBlock& block, const QuantStep* x, int64_t num_steps, int,
                           float* tile) {
  constexpr int kSteps = kSuperGroup / kQuantStep;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += kSteps, scales += (2 + 2 * kSteps) * kQuantCols) {
      const auto super = V::halves(scales + 2 * lane);
      for (int s = 0; s < 2 * kSteps; ++s) {
        const uint8_t* step = block.codes + (i + s / 2) * (64 * kBits);
        const QuantStep* rows = x + (i + s / 2) * kRows;
        V::prefetch(step + s % 2 * 32 * kBits, 32 * kBits);
        const auto scale =
            V::multiply(super, V::signed_bytes(scales + (2 + s) * kQuantCols + lane));
        typename V::Ints dots[kRows];
        dot_rows<V, kBits, GroupScale::kSuperSigned, kRows, 4>(step, s % 2 * 4, lane, rows, dots);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          sums[r] = V::multiply_add(V::to_floats(dots[r]),
                                    V::multiply(scale, V::floats(rows[r].scale)), sums[r]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

template <class V, int kRows>
constexpr void set_products(QuantKernels& kernels) {
  if constexpr (kRows <= V::kMaxRows) {
    kernels.products[0][kRows - 1] = multiply_groups<V, 8, GroupScale::kHalf, kRows>;
    kernels.products[1][kRows - 1] = multiply_groups<V, 4, GroupScale::kHalf, kRows>;
    kernels.products[2][kRows - 1] = multiply_groups<V, 4, GroupScale::kHalfAndZero, kRows>;
    kernels.products[3][kRows - 1] = multiply_super<V, 4, kRows>;
    kernels.products[4][kRows - 1] = multiply_super_signed<V, 6, kRows>;
    set_products<V, kRows + 1>(kernels);
  }
}

template <class V>
constexpr QuantKernels make_kernels(const char* name) {
  QuantKernels kernels{};
  kernels.name = name;
  kernels.max_rows = V::kMaxRows;
  set_products<V, 1>(kernels);
  return kernels;
}

}  // namespace
}  // namespace foretoken::cpu
