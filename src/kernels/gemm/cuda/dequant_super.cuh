#pragma once
#include <cstdint>

#include "kernels/cuda/mma.cuh"
#include "kernels/gemm/cuda/dequant_block_scales.cuh"
#include "kernels/gemm/cuda/dequant_pairs.cuh"

// GGUF's blocks of 2 to 6 bits in units (dequant_weight.cuh). A code becomes the bfloat16 nearest
// to its value, as a weight widened when loaded has it: scale * code - minimum takes one rounding
// to float, as 24 bits hold each product, then one to bfloat16.
namespace foretoken::cuda {

// A lane has 16 pairs of a row in a unit, number q = step * 2 + pair; each half of its words has
// one code of a pair. As many codes as fit lie whole in a half, one behind the other; the bits that
// are left over hold those of other pairs.
template <int Bits>
struct SuperCodes {
  static constexpr int kWords = Bits;
  static constexpr int kCodeBytes = Bits * 128;
  static constexpr bool kSpreads = true;    // a word has codes of any step
  static constexpr int kWhole = 16 / Bits;  // codes that lie whole in a half

  // What `code` of pair q adds to the lower half of word `word`.
  __device__ static uint32_t place(uint32_t code, int q, int word) {
    if constexpr (Bits == 2 || Bits == 4)
      return word == q / kWhole ? code << (q % kWhole * Bits) : 0;
    if constexpr (Bits == 3 || Bits == 5) {
      if (q == 15) return (code >> word & 1) << 15;
      return word == q / kWhole ? code << (q % kWhole * Bits) : 0;
    }
    if constexpr (Bits == 6) {
      const int first = q / 8 * 3, i = q % 8;
      if (i < 6) return word == first + i / 2 ? code << (i % 2 * 6) : 0;
      if (word == first + i - 6) return (code & 15) << 12;
      return word == first + 2 ? code >> 4 << (i * 2) : 0;
    }
    return 0;
  }

  // Both codes of pair q, each as 128 + code.
  __device__ static uint32_t pair_of(const uint32_t (&words)[Bits], int q) {
    constexpr uint32_t kCode = ((1u << Bits) - 1) * 0x10001u, k128 = 0x43004300u;
    if constexpr (Bits != 6) {
      if (Bits % 2 == 0 || q < 15) {
        return (words[q / kWhole] >> (q % kWhole * Bits) & kCode) | k128;
      }
      uint32_t pair = k128;
#pragma unroll
      for (int i = 0; i < Bits; ++i) pair |= words[i] >> (15 - i) & (0x10001u << i);
      return pair;
    }
    if constexpr (Bits == 6) {
      const int first = q / 8 * 3, i = q % 8;
      if (i < 6) return (words[first + i / 2] >> (i % 2 * 6) & kCode) | k128;
      const uint32_t low = (words[first + i - 6] >> 12 & 0x000f000fu) | k128;
      return low | (words[first + 2] >> (i * 2 - 4) & 0x00300030u);
    }
    return 0;
  }

  __device__ static uint32_t widened(uint32_t pair, const ScaleAndOffset& base) {
    if constexpr (Bits < 6) pair = subtract_pair(pair, 0x43004300u);
    return pack_bf16(fmaf(base.scale, first_of_pair(pair), base.offset),
                     fmaf(base.scale, second_of_pair(pair), base.offset));
  }
  __device__ static void widen(const uint32_t (&words)[Bits], int step, const ScaleAndOffset& base,
                               uint32_t (&b)[2]) {
    b[0] = widened(pair_of(words, step * 2), base);
    b[1] = widened(pair_of(words, step * 2 + 1), base);
  }
};

// Codes of four bits that stand for sixteen steps (CodeTable::kIq4). A half of a word has those of
// four pairs.
struct Iq4Codes : SuperCodes<4> {
  // Of the four codes in the lower half of `codes`: their values plus 128, a byte each.
  __device__ static uint32_t looked_up(uint32_t codes) {
    const uint32_t place = codes & 0x7777u;
    const uint32_t low = __byte_perm(0x3f2d1801u, 0x766a5d4fu, place);
    const uint32_t high = __byte_perm(0xa6998d81u, 0xf1d9c5b5u, place);
    return __byte_perm(low, high, 0x3210u + (codes >> 1 & 0x4444u));
  }
  // Byte i, which becomes 2^15 + byte, as a value.
  __device__ static float value_of(uint32_t bytes, int i) {
    const uint32_t place = static_cast<uint32_t>(0x7404 | i << 4);
    return __uint_as_float(__byte_perm(bytes, 0x47000000u, place)) - (32768 + 128);
  }
  __device__ static void widen(const uint32_t (&words)[4], int step, const ScaleAndOffset& base,
                               uint32_t (&b)[2]) {
    const uint32_t word = words[step / 2];
    const uint32_t low = looked_up(word & 0xffffu), high = looked_up(word >> 16);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int pair = step % 2 * 2 + i;
      b[i] = pack_bf16(base.scale * value_of(low, pair), base.scale * value_of(high, pair));
    }
  }
};

// A form as of dequant_codes.cuh, whose bases are those of Scales.
template <class Codes_, class Scales_, class Base_>
struct LoadedForm {
  using Codes = Codes_;
  using Scales = Scales_;
  using Base = Base_;
  static constexpr bool kScalesUnits = false;
  static constexpr int kScaleBytes = Scales::kBytes;
  static constexpr int kBases = Scales::kBases;
  __device__ static Base base(const uint8_t* scales, int i) {
    Scales own;
    own.load(scales);
    return own.base(i);
  }
};
template <class Codes, class Scales>
using BlockForm = LoadedForm<Codes, Scales, ScaleAndOffset>;

// x of 6 bits is 128 + code.
using Q2KForm = BlockForm<SuperCodes<2>, SuperScales<8, true, 0>>;
using Q3KForm = BlockForm<SuperCodes<3>, SuperScales<8, false, 4>>;
using Q4KForm = BlockForm<SuperCodes<4>, SuperScales<4, true, 0>>;
using Q5KForm = BlockForm<SuperCodes<5>, SuperScales<4, true, 0>>;
using Q6KForm = BlockForm<SuperCodes<6>, SuperScales<8, false, 160>>;
using Iq4XsForm = BlockForm<Iq4Codes, SuperScales<4, false, 0>>;
using Iq4NlForm = BlockForm<Iq4Codes, HalfScales<false, 0>>;
using Q41Form = BlockForm<SuperCodes<4>, HalfScales<true, 0>>;
using Q50Form = BlockForm<SuperCodes<5>, HalfScales<false, 16>>;
using Q51Form = BlockForm<SuperCodes<5>, HalfScales<true, 0>>;

}  // namespace foretoken::cuda
