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

// How the codes of a kind are read: their bits, what scales them, and their table.
template <int kBitsOfCode, GroupScale kGroupScale, CodeTable kCodeTable = CodeTable::kNone>
struct CodeKind {
  static constexpr int kBits = kBitsOfCode;
  static constexpr GroupScale kScale = kGroupScale;
  static constexpr CodeTable kTable = kCodeTable;
  // Of what is multiplied.
  static constexpr int kDotBits = kTable == CodeTable::kIq4    ? 8
                                  : kTable == CodeTable::kE2m1 ? 5
                                                               : kBits;
  static constexpr bool kHasMiddle =
      kScale == GroupScale::kHalf || kScale == GroupScale::kSuperSigned;
};

// CodeTable::kIq4, each plus 128.
alignas(64) constexpr uint8_t kIq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                               129, 141, 153, 166, 181, 197, 217, 241};
// CodeTable::kE2m1, each plus 16.
alignas(64) constexpr uint8_t kE2m1Codes[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                                16, 15, 14, 13, 12, 10, 8,  4};

// V: kLanes columns at once, from `lane` on.
//   Floats, Ints, Codes: a float, an int32 or four codes for each of these columns
//   low4, high4: the halves of bytes; with_bits_4_and_5(four, two, i): four | (two >> 2 i & 3) << 4
//   two_bits(v, i): v >> 2 i & 3; with_bit<t>(low, ones, i): low | (ones >> i & 1) << t
//   look_up(codes, table): what codes of four bits stand for
//   dot<bits>(sums, codes, x): sums + codes . x, of four signed bytes of x
//   kPartialDots<bits>: how many dots fit into Partials, narrower than Ints; 0: dot is used
//   add_dot<bits>(partials, codes, x): dot for Partials
//   fold(sums, partials): sums + partials
//   kCentresBytes: dot<8> takes 128 off the codes by itself
//   halves, bytes, signed_bytes: scales as floats
//   multiply_add(a, b, c) = a * b + c and subtract_product(c, a, b) = c - a * b, rounded once
template <class V, class C>
FT_QUANT_INLINE typename V::Codes unpack(const uint8_t* step, int vector, int lane) {
  const uint8_t* at = step + 4 * lane;
  if constexpr (C::kBits == 8) return V::load_codes(at + 64 * vector);
  if constexpr (C::kBits < 4) {
    const typename V::Codes two = V::two_bits(V::load_codes(at + 64 * (vector / 4)), vector % 4);
    if constexpr (C::kBits == 2) return two;
    return V::template with_bit<2>(two, V::load_codes(at + 128), vector);
  }
  const typename V::Codes bytes = V::load_codes(at + 64 * (vector % 4));
  const typename V::Codes four = vector < 4 ? V::low4(bytes) : V::high4(bytes);
  if constexpr (C::kTable == CodeTable::kIq4) return V::look_up(four, kIq4Codes);
  if constexpr (C::kTable == CodeTable::kE2m1) return V::look_up(four, kE2m1Codes);
  if constexpr (C::kBits == 4) return four;
  if constexpr (C::kBits == 5)
    return V::template with_bit<4>(four, V::load_codes(at + 256), vector);
  const typename V::Codes two = V::load_codes(at + 256 + 64 * (vector / 4));
  return V::with_bits_4_and_5(four, two, vector % 4);
}

// What dots of codes lack: minus the middle of the codes times the sum of a step, or of half of one
// from vector `first` on. Where bytes are centred it is there, and taken back from those that have
// none.
template <class V, class C, int kVectors>
FT_QUANT_INLINE int32_t minus_middle(const QuantStep& x, int first) {
  constexpr int kBits = C::kDotBits;
  constexpr bool kIsCentred = kBits == 8 && V::kCentresBytes;
  if constexpr (!C::kHasMiddle) return kIsCentred ? -x.minus_middle8 : 0;
  if constexpr (kIsCentred) return 0;
  if constexpr (kVectors == 4) {
    return kBits == 6 ? x.minus_middle6[first / 4] : x.minus_middle6[first / 4] / 8;
  }
  return kBits == 8 ? x.minus_middle8 : kBits == 5 ? 2 * x.minus_middle4 : x.minus_middle4;
}

// Dots of `kVectors` vectors from `first` on, no more than fit into Partials, added to the sums.
template <class V, class C, int kRows, int kVectors>
FT_QUANT_INLINE void add_partial_dots(const uint8_t* step, int first, int lane, const QuantStep* x,
                                      typename V::Ints (&sums)[kRows]) {
  typename V::Partials partials[kRows] = {};
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) {
    const typename V::Codes codes = unpack<V, C>(step, first + j, lane);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      partials[r] =
          V::template add_dot<C::kDotBits>(partials[r], codes, x[r].codes + 4 * (first + j));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = V::fold(sums[r], partials[r]);
}

// The sums of `kVectors` vectors from `first` on for each row, less the middle of the codes.
template <class V, class C, int kRows, int kVectors>
FT_QUANT_INLINE void dot_rows(const uint8_t* step, int first, int lane, const QuantStep* x,
                              typename V::Ints (&sums)[kRows]) {
  static_assert(kVectors == 8 || !C::kHasMiddle || C::kBits == 6 || C::kBits == 3);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = V::ints(minus_middle<V, C, kVectors>(x[r], first));
  constexpr int kPartialDots = V::template kPartialDots<C::kDotBits>;
  if constexpr (kPartialDots > 0) {
    constexpr int kDots = kPartialDots < kVectors ? kPartialDots : kVectors;
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; j += kDots) {
      add_partial_dots<V, C, kRows, kDots>(step, first + j, lane, x, sums);
    }
  } else {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      const typename V::Codes codes = unpack<V, C>(step, first + j, lane);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r] = V::template dot<C::kDotBits>(sums[r], codes, x[r].codes + 4 * (first + j));
      }
    }
  }
}

// Groups of at least 32: one scale for the step.
template <class V, class C, int kRows>
FT_QUANT_INLINE void add_step(const uint8_t* step, const Scales<V>& scales, int lane,
                              const QuantStep* x, typename V::Floats (&sums)[kRows]) {
  typename V::Ints dots[kRows];
  dot_rows<V, C, kRows, 8>(step, 0, lane, x, dots);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto scale = V::multiply(scales.scale, V::floats(x[r].scale));
    sums[r] = V::multiply_add(V::to_floats(dots[r]), scale, sums[r]);
    if constexpr (!C::kHasMiddle) {
      sums[r] = V::subtract_product(sums[r], scales.minimum, V::floats(x[r].scaled_sum));
    }
  }
}

// Groups of sixteen: half a step, from vector `first` on.
template <class V, class C, int kRows>
FT_QUANT_INLINE void add_half_step(const uint8_t* step, int first, const Scales<V>& scales,
                                   int lane, const QuantStep* x,
                                   typename V::Floats (&sums)[kRows]) {
  typename V::Ints dots[kRows];
  dot_rows<V, C, kRows, 4>(step, first, lane, x, dots);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sums[r] = V::multiply_add(V::to_floats(dots[r]),
                              V::multiply(scales.scale, V::floats(x[r].scale)), sums[r]);
    if constexpr (!C::kHasMiddle) {
      sums[r] =
          V::subtract_product(sums[r], scales.minimum, V::floats(x[r].scaled_sums16[first / 4]));
    }
  }
}

// A half for each group; with kHalfAndZero a zero behind the halves of all columns, with
// kHalfAndMinimum a half of the minimum.
template <class V, class C, int kRows>
void multiply_groups(const QuantBlock& block, const QuantStep* x, int64_t num_steps,
                     int steps_per_group, float* tile) {
  constexpr bool kHasZero = C::kScale == GroupScale::kHalfAndZero;
  constexpr bool kHasMinimum = C::kScale == GroupScale::kHalfAndMinimum;
  constexpr int kScaleBytes = (kHasMinimum ? 4 : kHasZero ? 3 : 2) * kQuantCols;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += steps_per_group, scales += kScaleBytes) {
      Scales<V> group{V::halves(scales + 2 * lane), V::floats(0)};
      const uint8_t* behind = scales + 2 * kQuantCols;
      if constexpr (kHasZero) group.minimum = V::multiply(group.scale, V::bytes(behind + lane));
      if constexpr (kHasMinimum) group.minimum = V::halves(behind + 2 * lane);
      for (int64_t s = i; s < i + steps_per_group; ++s) {
        const uint8_t* step = block.codes + s * (64 * C::kBits);
        V::prefetch(step, 64 * C::kBits);
        add_step<V, C, kRows>(step, group, lane, x + s * kRows, sums);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

template <class V, class C, int kGroup, int kRows>
void multiply_super(const QuantBlock& block, const QuantStep* x, int64_t num_steps, int,
                    float* tile) {
  constexpr int kSteps = kSuperGroup / kQuantStep, kParts = kQuantStep / kGroup;
  constexpr int kScaleBytes = (4 + 2 * kSteps * kParts) * kQuantCols;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += kSteps, scales += kScaleBytes) {
      const auto scale = V::halves(scales + 2 * lane);
      const auto minimum = V::halves(scales + 2 * kQuantCols + 2 * lane);
      for (int s = 0; s < kSteps * kParts; ++s) {
        const uint8_t* step = block.codes + (i + s / kParts) * (64 * C::kBits);
        const uint8_t* bytes = scales + (4 + 2 * s) * kQuantCols + lane;
        if (s % kParts == 0) V::prefetch(step, 64 * C::kBits);
        const Scales<V> group{V::multiply(scale, V::bytes(bytes)),
                              V::multiply(minimum, V::bytes(bytes + kQuantCols))};
        const QuantStep* rows = x + (i + s / kParts) * kRows;
        if constexpr (kParts == 1) {
          add_step<V, C, kRows>(step, group, lane, rows, sums);
        } else {
          add_half_step<V, C, kRows>(step, s % kParts * 4, group, lane, rows, sums);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

template <class V, class C, int kGroup, int kRows>
void multiply_super_signed(const QuantBlock& block, const QuantStep* x, int64_t num_steps, int,
                           float* tile) {
  constexpr int kSteps = kSuperGroup / kQuantStep, kParts = kQuantStep / kGroup;
  constexpr int kScaleBytes = (2 + kSteps * kParts) * kQuantCols;
  for (int lane = 0; lane < kQuantCols; lane += V::kLanes) {
    const uint8_t* scales = block.scales;
    typename V::Floats sums[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(tile + r * kQuantCols + lane);
    for (int64_t i = 0; i < num_steps; i += kSteps, scales += kScaleBytes) {
      const auto super = V::halves(scales + 2 * lane);
      for (int s = 0; s < kSteps * kParts; ++s) {
        const uint8_t* step = block.codes + (i + s / kParts) * (64 * C::kBits);
        const QuantStep* rows = x + (i + s / kParts) * kRows;
        if (s % kParts == 0) V::prefetch(step, 64 * C::kBits);
        const Scales<V> group{
            V::multiply(super, V::signed_bytes(scales + (2 + s) * kQuantCols + lane)),
            V::floats(0)};
        if constexpr (kParts == 1) {
          add_step<V, C, kRows>(step, group, lane, rows, sums);
        } else {
          add_half_step<V, C, kRows>(step, s % kParts * 4, group, lane, rows, sums);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) V::store(tile + r * kQuantCols + lane, sums[r]);
  }
}

// In the order of quant_kind.
template <class V, int kRows>
constexpr void set_products(QuantKernels& kernels) {
  using enum GroupScale;
  if constexpr (kRows <= V::kMaxRows) {
    const QuantProduct of_kinds[kQuantKinds] = {
        multiply_groups<V, CodeKind<8, kHalf>, kRows>,
        multiply_groups<V, CodeKind<4, kHalf>, kRows>,
        multiply_groups<V, CodeKind<4, kHalfAndZero>, kRows>,
        multiply_super<V, CodeKind<4, kSuper>, 32, kRows>,
        multiply_super_signed<V, CodeKind<6, kSuperSigned>, 16, kRows>,
        multiply_groups<V, CodeKind<4, kHalfAndMinimum>, kRows>,
        multiply_groups<V, CodeKind<5, kHalf>, kRows>,
        multiply_groups<V, CodeKind<5, kHalfAndMinimum>, kRows>,
        multiply_super<V, CodeKind<5, kSuper>, 32, kRows>,
        multiply_super_signed<V, CodeKind<3, kSuperSigned>, 16, kRows>,
        multiply_super<V, CodeKind<2, kSuper>, 16, kRows>,
        multiply_groups<V, CodeKind<4, kHalf, CodeTable::kIq4>, kRows>,
        multiply_super_signed<V, CodeKind<4, kSuperSigned, CodeTable::kIq4>, 32, kRows>,
        multiply_groups<V, CodeKind<2, kHalfAndMinimum>, kRows>,
        multiply_groups<V, CodeKind<4, kHalf, CodeTable::kE2m1>, kRows>,
        multiply_groups<V, CodeKind<8, kHalfAndMinimum>, kRows>,
    };
    for (int i = 0; i < kQuantKinds; ++i) kernels.products[i][kRows - 1] = of_kinds[i];
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
