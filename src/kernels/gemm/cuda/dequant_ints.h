#pragma once
#include <cstdint>

#include "kernels/gemm/cuda/dequant_units.h"

// Codes of four and eight bits minus a zero, times the scale of their group: the bfloat16 nearest
// to (code - zero) * scale, where the scale is the bfloat16 nearest to the file's half, and 2^24
// times smaller than that, so that no place of a code in a word needs a scale that is too large. A
// code that lies in the lowest bits of a bfloat16 is code * 2^-133, and four bits higher code *
// 2^-129, be that a subnormal number or not: bit 7 is the exponent 1 of the smallest normal one.
// Nothing but the last rounding loses bits.
namespace foretoken::cuda {

// What an operand is too small by; row scales (QuantizedMatrix) make up for it.
inline constexpr float kSmallRowScale = 16777216.0f;

// Of a lane's row and the k of one of its groups, twice each.
struct IntBase {
  uint32_t scale;  // times 2^105, for codes four bits high
  uint32_t zero;   // minus the middle, times the operand's scale; or the zero, in the lowest bits

  // For codes in the lowest bits: 2^4 times as much, in the exponent.
  FT_HD uint32_t low_scale() const { return scale + 0x02000200u; }
};

// The scale as it lies in a unit, of the bits of the bfloat16 nearest to the file's half. One that
// is no number becomes 2^16.
FT_HD constexpr uint16_t int_scale_bits(uint16_t nearest) {
  constexpr int kExponent = 105 << 7;
  if ((nearest & 0x7fff) == 0) return 0;
  if ((nearest & 0x7f80) == 0x7f80) return static_cast<uint16_t>((nearest & 0x8000) | 0x7c00);
  return static_cast<uint16_t>(nearest + kExponent);
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

// For each of 8 rows its scales, two bytes each; then, with zeros, for each row a byte for each
// scale, filled up to 16.
template <int Bits, int Group, bool HasZeros>
struct IntScales {
  static constexpr int kBases = kUnitK / Group;
  static constexpr int kZeroPlace = 8 * kBases * 2;
  static constexpr int kBytes = (kZeroPlace + (HasZeros ? 8 * kBases : 0) + 15) / 16 * 16;
  static constexpr int kWords = (kBases + 1) / 2;
  static_assert(Group == 32 || Group == 128);

  uint32_t words[kWords];  // of two scales
  uint32_t zeros;          // of four

  FT_HD static constexpr int scale_place(int row, int group) { return (row * kBases + group) * 2; }
  FT_HD static constexpr int zero_place(int row, int group) {
    return kZeroPlace + row * kBases + group;
  }

  FT_HD void load(const uint8_t* scales, int row) {
    if constexpr (kBases == 1) {
      words[0] = reinterpret_cast<const uint16_t*>(scales)[row];
      zeros = HasZeros ? scales[zero_place(row, 0)] : 0;
    } else {
      struct alignas(8) Both {
        uint32_t words[2];
      };
      const Both both = reinterpret_cast<const Both*>(scales)[row];
      words[0] = both.words[0];
      words[kWords - 1] = both.words[1];
      zeros = HasZeros ? reinterpret_cast<const uint32_t*>(scales + kZeroPlace)[row] : 0;
    }
  }
  template <class Pairs>
  FT_HD IntBase base_of(int i) const {
    const uint32_t scale = Pairs::bytes(words[i / 2], 0, i % 2 == 0 ? 0x1010u : 0x3232u);
    if constexpr (HasZeros) {
      const uint32_t byte = 0x4040u + static_cast<uint32_t>(i) * 0x0101u;  // and a zero byte
      return {scale, Pairs::bytes(zeros, 0, byte)};
    } else {
      // -2^-129 times the middle, which is 2^(Bits - 1).
      constexpr uint32_t kMinusMiddle = (0x8000u + ((Bits - 3) << 7)) * 0x10001u;
      return {scale, Pairs::multiply(scale, kMinusMiddle)};
    }
  }
  FT_HD uint32_t last_read() const { return words[kWords - 1] | zeros; }
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
    b[0] = Pairs::multiply_add(Pairs::bytes(w, 0, 0x4341u), base.low_scale(), base.zero);
    b[1] = Pairs::multiply_add(w & 0x00ff00ffu, base.low_scale(), base.zero);
  }
};

}  // namespace foretoken::cuda
