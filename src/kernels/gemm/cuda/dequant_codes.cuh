#pragma once
#include <cstdint>

#include "kernels/gemm/cuda/dequant_ints.h"
#include "kernels/gemm/cuda/dequant_pairs.cuh"
#include "kernels/gemm/cuda/dequant_weight.cuh"

// How codes lie in units (dequant_weight.cuh) and become operands. A lane has the codes of row
// lane / 4 of the unit; those of a step of 16 k are two pairs, with t = lane % 4 of columns 2 t and
// 2 t + 1, and of 2 t + 8 and 2 t + 9: what mma.sync wants as operand B of 8 columns, and, of two
// groups of rows, it and wgmma as operand A of 16 rows. Everything in this file is exact, but for
// dequant_ints.h.
namespace foretoken::cuda {

// Codes of eight bits: a word a step; code (column, pair p) in byte 2 * (column % 2) + 1 - p.
struct WordOfStep {
  static constexpr int kWords = 8;  // of a lane, in a unit
  static constexpr int kCodeBytes = 1024;
  static constexpr bool kSpreads = false;  // a word has whole steps
  __device__ static uint32_t place(uint32_t code, int /*step*/, int pair, int odd) {
    return code << ((odd * 2 + 1 - pair) * 8);
  }
};

// Sign, exponent and mantissa are moved to their places in a bfloat16, which then is 2^120 too
// small. Those of pair 0 lie there; of pair 1 the sign and the last four bits lie four places
// lower, the other three four places higher: five operations for four codes.
struct E4m3Codes : WordOfStep {
  __device__ static uint32_t place(uint32_t code, int /*step*/, int pair, int odd) {
    const uint32_t sign = code >> 7, rest = code & 0x7f;
    const uint32_t bits =
        pair == 0 ? sign << 15 | rest << 4 : sign << 11 | rest >> 4 << 12 | (rest & 15);
    return bits << (odd * 16);
  }
  __device__ static uint32_t scaled(uint32_t moved) {
    constexpr uint32_t kTwoTo120 = 0x7b807b80u;
    return multiply_pair(moved, kTwoTo120);
  }
  __device__ static uint32_t moved(uint32_t w) {
    return (w & 0x80008000u) | ((w & 0x7f007f00u) >> 4);
  }
  // Of codes as they are, in bytes 1 and 3.
  __device__ static uint32_t widened(uint32_t w) { return scaled(moved(w)); }
  __device__ static void widen(const uint32_t (&words)[8], int step, uint32_t, uint32_t (&b)[2]) {
    const uint32_t w = words[step];
    b[0] = scaled(w & 0x87f087f0u);
    b[1] = scaled((w << 4 & 0x80f080f0u) | (w >> 4 & 0x07000700u));
  }
};

// Codes of four bits: a word for two steps; pair p of step s is number s % 2 * 2 + p of four.
struct WordOfSteps {
  static constexpr int kWords = 4;
  static constexpr int kCodeBytes = 512;
  static constexpr bool kSpreads = false;
};

__device__ inline uint32_t bits_of(uint32_t base) { return base; }
__device__ inline uint32_t bits_of(const IntBase& base) { return base.scale | base.zero; }

// Codes of dequant_ints.h.
template <class Codes>
struct UintCodes : Codes {
  __device__ static void widen(const uint32_t (&words)[Codes::kWords], int step,
                               const IntBase& base, uint32_t (&b)[2]) {
    Codes::template widen_by<DevicePairs>(words, step, base, b);
  }
};

// Sign and the other three bits lie as in a bfloat16 that is 2^126 too small, the pairs 0, 3 and 6
// bits lower; of the fourth what places are left. `base`: 2^102 times the scale of the row's group,
// so that row scales are kSmallRowScale.
struct E2m1Codes : WordOfSteps {
  __device__ static uint32_t place(uint32_t code, int step, int pair, int odd) {
    const int i = step % 2 * 2 + pair;
    const uint32_t sign = code >> 3, rest = code & 7;
    const uint32_t bits = i < 3 ? sign << (15 - 3 * i) | rest << (6 - 3 * i)
                                : sign << 14 | rest >> 2 << 13 | (rest & 3) << 10;
    return bits << (odd * 16);
  }
  __device__ static uint32_t scaled(uint32_t moved, uint32_t base) {
    return multiply_pair(moved, base);
  }
  __device__ static void widen(const uint32_t (&words)[4], int step, uint32_t base,
                               uint32_t (&b)[2]) {
    constexpr uint32_t kBits = 0x81c081c0u;
    const uint32_t w = words[step / 2];
    if (step % 2 == 0) {
      b[0] = scaled(w & kBits, base);
      b[1] = scaled(w << 3 & kBits, base);
    } else {
      const uint32_t last =
          (w >> 4 & 0x00c000c0u) | (w >> 5 & 0x01000100u) | (w << 1 & 0x80008000u);
      b[0] = scaled(w << 6 & kBits, base);
      b[1] = scaled(last, base);
    }
  }
};

// A lane's codes of a unit in shared memory.
template <int Words>
__device__ inline void load_codes(uint32_t (&words)[Words], const uint8_t* unit) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < Words / 4; ++i) {
    const uint4 chunk = reinterpret_cast<const uint4*>(unit)[i * 32 + lane];
    words[i * 4] = chunk.x;
    words[i * 4 + 1] = chunk.y;
    words[i * 4 + 2] = chunk.z;
    words[i * 4 + 3] = chunk.w;
  }
  const auto* rest = reinterpret_cast<const uint32_t*>(unit) + Words / 4 * 128;
  if constexpr (Words % 4 == 1) words[Words - 1] = rest[lane];
  if constexpr (Words % 4 == 2) {
    const uint2 chunk = reinterpret_cast<const uint2*>(rest)[lane];
    words[Words - 2] = chunk.x;
    words[Words - 1] = chunk.y;
  }
  if constexpr (Words % 4 == 3) {
#pragma unroll
    for (int i = 0; i < 3; ++i) words[Words - 3 + i] = rest[lane * 3 + i];
  }
}

// What scales the codes of a unit. kScalesUnits: a unit is a part, whose sum is multiplied by
// scale(scales, row) and added to the sums of the parts before; otherwise parts of part_units are
// only added.
// base(scales, i): what Codes::widen wants, a Base, for the i-th of kBases equal ranges of k, of
// row lane / 4.
struct NoScales {
  using Base = uint32_t;
  static constexpr bool kScalesUnits = false;
  static constexpr int kScaleBytes = 0;
  static constexpr int kBases = 1;
  __device__ static uint32_t base(const uint8_t*, int) { return 0; }
};

struct Fp8Form : NoScales {
  using Codes = E4m3Codes;
};

// Eight floats.
struct Fp8By128Form : NoScales {
  using Codes = E4m3Codes;
  static constexpr bool kScalesUnits = true;
  static constexpr int kScaleBytes = 32;
  __device__ static float scale(const uint8_t* scales, int row) {
    return reinterpret_cast<const float*>(scales)[row];
  }
};

// A byte for each of [4 groups][8 rows]: the exponent of 2^102 times the scale as a bfloat16, 0 for
// zero.
struct Mxfp4Form : NoScales {
  using Codes = E2m1Codes;
  static constexpr int kScaleBytes = 32;
  static constexpr int kBases = 4;
  __device__ static uint32_t base(const uint8_t* scales, int group) {
    return (uint32_t{scales[group * 8 + threadIdx.x % 32 / 4]} << 7) * 0x10001u;
  }
};

// A byte for each of [8 rows][8 groups]: nvfp4_scale_bits. The product of such a scale with an E2M1
// is a bfloat16.
struct Nvfp4Form : NoScales {
  using Codes = E2m1Codes;
  static constexpr int kScaleBytes = 64;
  static constexpr int kBases = 8;
  __device__ static uint32_t base(const uint8_t* scales, int group) {
    return base_of(reinterpret_cast<const uint32_t*>(scales)[threadIdx.x % 32 / 4 * 2 + group / 4],
                   group % 4);
  }
  __device__ static uint32_t base_of(uint32_t word, int byte) {
    const uint32_t places = static_cast<uint32_t>(byte) * 0x0101u + 0x4040u;  // bytes 0 and 2
    return __byte_perm(word, 0, places) * 16 + kNvfp4Base;
  }
};

// The scales of integers, of a lane's row.
template <int Bits, int Group, IntOffset Offset>
struct LaneIntScales : IntScales<Bits, Group, Offset> {
  __device__ void load(const uint8_t* scales) {
    IntScales<Bits, Group, Offset>::load(scales, static_cast<int>(threadIdx.x) % 32 / 4);
  }
  __device__ IntBase base(int i) const { return this->template base_of<DevicePairs>(i); }
};

// Row scales are kSmallRowScale.
template <class Codes_, int Bits, int Group, IntOffset Offset>
struct IntForm {
  using Codes = UintCodes<Codes_>;
  using Scales = LaneIntScales<Bits, Group, Offset>;
  using Base = IntBase;
  static constexpr bool kScalesUnits = false;
  static constexpr int kScaleBytes = Scales::kBytes;
  static constexpr int kBases = Scales::kBases;
  __device__ static Base base(const uint8_t* scales, int i) {
    Scales own;
    own.load(scales);
    return own.base(i);
  }
};
template <int Group, bool HasZeros>
using Int4Form =
    IntForm<Int4Codes<HasZeros>, 4, Group, HasZeros ? IntOffset::kZeros : IntOffset::kMiddle>;
using Int8Form = IntForm<Int8Codes, 8, 32, IntOffset::kMiddle>;
using Int2MinForm = IntForm<SpreadCodes<2>, 2, 16, IntOffset::kMinimum>;
using Int3Form = IntForm<SpreadCodes<3>, 3, 16, IntOffset::kMiddle>;
using Int4MinForm = IntForm<Int4Codes<false>, 4, 32, IntOffset::kMinimum>;
using Int5Form = IntForm<SpreadCodes<5>, 5, 32, IntOffset::kMiddle>;
using Int5MinForm = IntForm<SpreadCodes<5>, 5, 32, IntOffset::kMinimum>;
using Int6Form = IntForm<SpreadCodes<6>, 6, 16, IntOffset::kMiddle>;
using Iq4Form = IntForm<Iq4Codes, 8, 32, IntOffset::kMiddle>;

// What a lane keeps of the bases of a unit until it widens codes.
template <class Form>
struct KeptBases {
  uint32_t bases[Form::kBases];

  __device__ void load(const uint8_t* scales) {
#pragma unroll
    for (int i = 0; i < Form::kBases; ++i) bases[i] = Form::base(scales, i);
  }
  __device__ uint32_t base(int i) const { return bases[i]; }
  __device__ uint32_t last_read() const { return Form::kBases > 1 ? bases[Form::kBases - 1] : 0; }
};
template <class Codes, int Bits, int Group, IntOffset Offset>
struct KeptBases<IntForm<Codes, Bits, Group, Offset>> : LaneIntScales<Bits, Group, Offset> {};
// Eight bytes become pairs when they are needed.
template <>
struct KeptBases<Nvfp4Form> {
  uint32_t words[2];

  __device__ void load(const uint8_t* scales) {
    const uint2 both = reinterpret_cast<const uint2*>(scales)[threadIdx.x % 32 / 4];
    words[0] = both.x;
    words[1] = both.y;
  }
  __device__ uint32_t base(int i) const { return Nvfp4Form::base_of(words[i / 4], i % 4); }
  __device__ uint32_t last_read() const { return words[1]; }
};

template <class Form>
inline constexpr int kUnitBytes = Form::Codes::kCodeBytes + Form::kScaleBytes;

// use.template operator()<Form>().
template <class Use>
auto with_form(DequantKind kind, const Use& use) {
  switch (kind) {
    case DequantKind::kFp8:
      return use.template operator()<Fp8Form>();
    case DequantKind::kFp8By128:
      return use.template operator()<Fp8By128Form>();
    case DequantKind::kMxfp4:
      return use.template operator()<Mxfp4Form>();
    case DequantKind::kNvfp4:
      return use.template operator()<Nvfp4Form>();
    case DequantKind::kInt4By128:
      return use.template operator()<Int4Form<128, false>>();
    case DequantKind::kInt4By32:
      return use.template operator()<Int4Form<32, false>>();
    case DequantKind::kInt4ZeroBy128:
      return use.template operator()<Int4Form<128, true>>();
    case DequantKind::kInt4ZeroBy32:
      return use.template operator()<Int4Form<32, true>>();
    case DequantKind::kInt2MinBy16:
      return use.template operator()<Int2MinForm>();
    case DequantKind::kInt3By16:
      return use.template operator()<Int3Form>();
    case DequantKind::kInt4MinBy32:
      return use.template operator()<Int4MinForm>();
    case DequantKind::kInt5By32:
      return use.template operator()<Int5Form>();
    case DequantKind::kInt5MinBy32:
      return use.template operator()<Int5MinForm>();
    case DequantKind::kInt6By16:
      return use.template operator()<Int6Form>();
    case DequantKind::kIq4By32:
      return use.template operator()<Iq4Form>();
    default:
      return use.template operator()<Int8Form>();
  }
}

}  // namespace foretoken::cuda
