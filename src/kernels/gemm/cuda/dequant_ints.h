#pragma once
#include <cstdint>

#include "kernels/gemm/cuda/dequant_units.h"

// Codes of two to eight bits minus a middle or a zero, times the scale of their group: the bfloat16
// nearest to (code - zero) * scale; or times the scale and less a minimum: the bfloat16 nearest to
// code * scale - minimum. Scale and minimum are the bfloat16 nearest to the file's, and all are
// 2^24 times smaller than that, so that no place of a code in a word needs a scale that is too
// large. A code that lies in the lowest bits of a bfloat16 is code * 2^-133, and four bits higher
// code * 2^-129, be that a subnormal number or not: bit 7 is the exponent 1 of the smallest normal
// one. Nothing but the last rounding loses bits.
namespace foretoken::cuda {

// What an operand is too small by; row scales (QuantizedMatrix) make up for it.
inline constexpr float kSmallRowScale = 16777216.0f;

// Of a lane's row and the k of one of its groups, twice each.
struct IntBase {
  uint32_t scale;  // for codes at the place that their form has (IntScales::kPlace)
  // Minus the middle times the operand's scale, or minus the operand's minimum; or the zero, in the
  // lowest bits.
  uint32_t zero;

  // For codes in the lowest bits, of a scale for those four bits high: 2^4 times as much.
  FT_HD uint32_t low_scale() const { return scale + 0x02000200u; }
};

// The scale as it lies in a unit, of the bits of the bfloat16 nearest to the file's, for codes that
// lie `place` bits high. One of more than 2^16, which no half has, or that is no number becomes
// 2^16.
FT_HD constexpr uint16_t int_scale_bits(uint16_t nearest, int place) {
  constexpr int kMax = 0x4780;
  const int size = nearest & 0x7fff, sign = nearest & 0x8000;
  if (size == 0) return 0;
  return static_cast<uint16_t>(sign | ((size < kMax ? size : kMax) + ((109 - place) << 7)));
}

// A positive E4M3 of NVFP4 as five bits of exponent and three behind them, all normal, so that
// 2^102 times it as a bfloat16 is 16 * bits + kNvfp4Base; 0 for zero, whose codes are zeros.
inline constexpr uint32_t kNvfp4Base = 0x6d806d80u;  // of two
FT_HD constexpr uint8_t nvfp4_scale_bits(uint8_t e4m3) {
  const int exponent = e4m3 >> 3 & 15, rest = e4m3 & 7;
  if (exponent > 0) return static_cast<uint8_t>((exponent + 3) << 3 | rest);
  if (rest == 0) return 0;
  const int top = rest >= 4 ? 2 : rest >= 2 ? 1 : 0;
  return static_cast<uint8_t>((top + 1) << 3 | (rest << (3 - top) & 7));
}
// A code of E2M1 beside such a scale, whose sign it takes.
FT_HD constexpr uint32_t nvfp4_code(uint32_t code, uint8_t e4m3) {
  if ((e4m3 & 0x7f) == 0) return 0;
  return (e4m3 & 0x80) != 0 ? code ^ 8u : code;
}

// What is taken from codes beside their scale.
enum class IntOffset : uint8_t {
  kMiddle,   // 2^(bits - 1)
  kZeros,    // a byte for each scale
  kMinimum,  // of the product, as many bits as the scale
};

// Words of a row that one load brings.
template <int Count>
struct alignas(Count * 4) RowWords {
  uint32_t at[Count];
};

// For each of 8 rows its scales, two bytes each; then for each row its minima, likewise, or a byte
// for each scale, filled up to 16.
template <int Bits, int Group, IntOffset Offset>
struct IntScales {
  static constexpr IntOffset kOffset = Offset;
  static constexpr bool kHasZeros = Offset == IntOffset::kZeros;
  static constexpr bool kHasMinima = Offset == IntOffset::kMinimum;
  // Half of the codes of four bits are used where they lie.
  static constexpr int kPlace = Bits == 4 ? 4 : 0;
  static constexpr uint32_t kMinusMiddle = (0x8000u | 1u << (Bits - 1 + kPlace)) * 0x10001u;
  static constexpr int kBases = kUnitK / Group;
  static constexpr int kBehind = 8 * kBases * 2;  // where the scales end
  static constexpr int kBehindBytes = 8 * kBases * (kHasMinima ? 2 : kHasZeros ? 1 : 0);
  static constexpr int kBytes = (kBehind + kBehindBytes + 15) / 16 * 16;
  static constexpr int kWords = (kBases + 1) / 2;
  static constexpr int kBehindWords = kHasMinima ? kWords : 1;
  static_assert(Group == 16 || Group == 32 || Group == 128);
  static_assert(Group == 32 || (Group == 16 ? !kHasZeros : !kHasMinima));

  RowWords<kWords> words;         // of two scales
  RowWords<kBehindWords> behind;  // of two minima, or of four zeros

  FT_HD static constexpr int scale_place(int row, int group) { return (row * kBases + group) * 2; }
  FT_HD static constexpr int zero_place(int row, int group) {
    return kBehind + row * kBases + group;
  }
  FT_HD static constexpr int minimum_place(int row, int group) {
    return kBehind + scale_place(row, group);
  }

  FT_HD void load(const uint8_t* scales, int row) {
    if constexpr (kOffset == IntOffset::kMiddle) behind.at[0] = 0;
    if constexpr (kBases == 1) {
      words.at[0] = reinterpret_cast<const uint16_t*>(scales)[row];
      if constexpr (kHasZeros) behind.at[0] = scales[zero_place(row, 0)];
    } else {
      words = reinterpret_cast<const RowWords<kWords>*>(scales)[row];
      if constexpr (kOffset != IntOffset::kMiddle) {
        behind = reinterpret_cast<const RowWords<kBehindWords>*>(scales + kBehind)[row];
      }
    }
  }
  template <class Pairs>
  FT_HD IntBase base_of(int i) const {
    const uint32_t both = i % 2 == 0 ? 0x1010u : 0x3232u;
    const uint32_t scale = Pairs::bytes(words.at[i / 2], 0, both);
    if constexpr (kHasZeros) {
      const uint32_t byte = 0x4040u + static_cast<uint32_t>(i) * 0x0101u;  // and a zero byte
      return {scale, Pairs::bytes(behind.at[0], 0, byte)};
    } else if constexpr (kHasMinima) {
      return {scale, Pairs::bytes(behind.at[i / 2], 0, both)};
    } else {
      return {scale, Pairs::multiply(scale, kMinusMiddle)};
    }
  }
  FT_HD uint32_t last_read() const { return words.at[kWords - 1] | behind.at[kBehindWords - 1]; }
};

// Pair p of step s is number s % 2 * 2 + p of four in the halves of a word. Pairs: operations on
// two bfloat16 in a word.
template <bool HasZeros>
struct Int4Codes {
  static constexpr int kWords = 4;
  static constexpr int kCodeBytes = 512;
  static constexpr bool kSpreads = false;

  FT_HD static constexpr uint32_t place(uint32_t code, int step, int pair, int odd) {
    return code << (odd * 16 + (step % 2 * 2 + pair) * 4);
  }

  template <class Pairs>
  FT_HD static void widen_by(const uint32_t (&words)[4], int step, const IntBase& base,
                             uint32_t (&b)[2]) {
    const uint32_t w = step % 2 == 0 ? words[step / 2] : words[step / 2] >> 8;
    const uint32_t low = w & 0x000f000fu, high = w & 0x00f000f0u;
    const uint32_t low_scale = base.low_scale();
    if constexpr (HasZeros) {
      constexpr uint32_t k16 = 0x41804180u;
      const uint32_t high_zero = Pairs::multiply(base.zero, k16);
      b[0] = Pairs::multiply(Pairs::subtract(low, base.zero), low_scale);
      b[1] = Pairs::multiply(Pairs::subtract(high, high_zero), base.scale);
    } else {
      b[0] = Pairs::multiply_add(low, low_scale, base.zero);
      b[1] = Pairs::multiply_add(high, base.scale, base.zero);
    }
  }
};

// A code stands for one of sixteen steps (CodeTable::kIq4), which are those of 8 bits minus the
// middle. A half of a word has a step, its codes in the order in which their bytes become pairs.
struct Iq4Codes {
  static constexpr int kWords = 4;
  static constexpr int kCodeBytes = 512;
  static constexpr bool kSpreads = false;

  FT_HD static constexpr uint32_t place(uint32_t code, int step, int pair, int odd) {
    return code << (step % 2 * 16 + odd * 8 + pair * 4);
  }

  template <class Pairs>
  FT_HD static void widen_by(const uint32_t (&words)[4], int step, const IntBase& base,
                             uint32_t (&b)[2]) {
    const uint32_t w = words[step / 2];
    const int half = step % 2 * 16;
    const uint32_t places = (w & 0x77777777u) >> half;
    const uint32_t which = (0x32103210u | (w >> 1 & 0x44444444u)) >> half;
    const uint32_t low = Pairs::bytes(0x3f2d1801u, 0x766a5d4fu, places);
    const uint32_t high = Pairs::bytes(0xa6998d81u, 0xf1d9c5b5u, places);
    const uint32_t values = Pairs::bytes(low, high, which);
    b[0] = Pairs::multiply_add(values & 0x00ff00ffu, base.scale, base.zero);
    b[1] = Pairs::multiply_add(Pairs::bytes(values, 0, 0x4341u), base.scale, base.zero);
  }
};

// A word a step; code (column, pair p) in byte 2 * (column % 2) + 1 - p.
struct Int8Codes {
  static constexpr int kWords = 8;
  static constexpr int kCodeBytes = 1024;
  static constexpr bool kSpreads = false;

  FT_HD static constexpr uint32_t place(uint32_t code, int /*step*/, int pair, int odd) {
    return code << ((odd * 2 + 1 - pair) * 8);
  }

  template <class Pairs>
  FT_HD static void widen_by(const uint32_t (&words)[8], int step, const IntBase& base,
                             uint32_t (&b)[2]) {
    const uint32_t w = words[step];
    b[0] = Pairs::multiply_add(Pairs::bytes(w, 0, 0x4341u), base.scale, base.zero);
    b[1] = Pairs::multiply_add(w & 0x00ff00ffu, base.scale, base.zero);
  }
};

// Of 2, 3, 5 or 6 bits. A lane has 16 pairs of a row in a unit, number q = step * 2 + pair; each
// half of its words has one code of a pair. As many codes as fit lie whole in a half, one behind
// the other; the bits that are left over hold those of other pairs.
template <int Bits>
struct SpreadCodes {
  static constexpr int kWords = Bits;
  static constexpr int kCodeBytes = Bits * 128;
  static constexpr bool kSpreads = true;    // a word has codes of any step
  static constexpr int kWhole = 16 / Bits;  // codes that lie whole in a half
  static_assert(Bits == 2 || Bits == 3 || Bits == 5 || Bits == 6);

  // What `code` of pair q adds to the lower half of word `word`.
  FT_HD static constexpr uint32_t place(uint32_t code, int q, int word) {
    if constexpr (Bits == 6) {
      const int first = q / 8 * 3, i = q % 8;
      if (i < 6) return word == first + i / 2 ? code << (i % 2 * 6) : 0;
      if (word == first + i - 6) return (code & 15) << 12;
      return word == first + 2 ? code >> 4 << (i * 2) : 0;
    } else {
      if (Bits != 2 && q == 15) return (code >> word & 1) << 15;
      return word == q / kWhole ? code << (q % kWhole * Bits) : 0;
    }
  }

  // Both codes of pair q, each in the lowest bits.
  FT_HD static uint32_t pair_of(const uint32_t (&words)[Bits], int q) {
    constexpr uint32_t kCode = ((1u << Bits) - 1) * 0x10001u;
    if constexpr (Bits == 6) {
      const int first = q / 8 * 3, i = q % 8;
      if (i < 6) return words[first + i / 2] >> (i % 2 * 6) & kCode;
      return (words[first + i - 6] >> 12 & 0x000f000fu) |
             (words[first + 2] >> (i * 2 - 4) & 0x00300030u);
    } else {
      if (Bits == 2 || q < 15) return words[q / kWhole] >> (q % kWhole * Bits) & kCode;
      uint32_t pair = 0;
      FT_UNROLL
      for (int i = 0; i < Bits; ++i) pair |= words[i] >> (15 - i) & (0x10001u << i);
      return pair;
    }
  }

  template <class Pairs>
  FT_HD static void widen_by(const uint32_t (&words)[Bits], int step, const IntBase& base,
                             uint32_t (&b)[2]) {
    b[0] = Pairs::multiply_add(pair_of(words, step * 2), base.scale, base.zero);
    b[1] = Pairs::multiply_add(pair_of(words, step * 2 + 1), base.scale, base.zero);
  }
};

}  // namespace foretoken::cuda
