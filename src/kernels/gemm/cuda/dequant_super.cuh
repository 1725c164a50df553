#pragma once
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/mma.cuh"
#include "kernels/gemm/cuda/dequant_pairs.cuh"

// GGUF's K-quants: units (dequant_weight.cuh) of codes of 4 to 6 bits whose scales are themselves
// scaled. A code becomes the bfloat16 nearest to its value, as a weight widened when loaded has it:
// scale * code - minimum takes one rounding to float, as 22 or 23 bits hold each product, then one
// to bfloat16.
namespace foretoken::cuda {

// Of a row and the k of one of its groups: value = scale * x + offset.
struct ScaleAndOffset {
  float scale;
  float offset;
};
__device__ inline uint32_t bits_of(const ScaleAndOffset& base) {
  return __float_as_uint(base.scale) | __float_as_uint(base.offset);
}
__device__ inline uint32_t bits_of(uint32_t base) { return base; }

// A lane has 16 pairs of a row in a unit, number q = step * 2 + pair; each half of its words has
// one code of a pair. As many codes as fit lie whole in a half, one behind the other; the bits that
// are left over hold those of other pairs.
template <int Bits>
struct SuperCodes {
  static constexpr int kWords = Bits;
  static constexpr int kCodeBytes = Bits * 128;
  static constexpr bool kSpreads = true;  // a word has codes of any step

  // What `code` of pair q adds to the lower half of word `word`.
  __device__ static uint32_t place(uint32_t code, int q, int word) {
    if constexpr (Bits == 4) return word == q / 4 ? code << (q % 4 * 4) : 0;
    if constexpr (Bits == 5) {
      if (q == 15) return (code >> word & 1) << 15;
      return word == q / 3 ? code << (q % 3 * 5) : 0;
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
    if constexpr (Bits == 4) return (words[q / 4] >> (q % 4 * 4) & kCode) | k128;
    if constexpr (Bits == 5) {
      if (q < 15) return (words[q / 3] >> (q % 3 * 5) & kCode) | k128;
      uint32_t pair = k128;
#pragma unroll
      for (int i = 0; i < 5; ++i) pair |= words[i] >> (15 - i) & (0x10001u << i);
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

// The scales of a unit's rows as they lie in it: for each row eight bytes, then for each row its
// halves. 4 and 5 bits: scales and then minima of four groups of 32; halves d and m. 6 bits: scales
// plus 128 of eight groups of 16; a half d. A lane's are those of row lane / 4.
template <int Bits>
struct SuperScales {
  static constexpr bool kHasMinimum = Bits < 6;
  uint2 bytes;
  uint32_t halves;

  __device__ void load(const uint8_t* scales) {
    const int row = threadIdx.x % 32 / 4;
    bytes = reinterpret_cast<const uint2*>(scales)[row];
    const uint8_t* behind = scales + 8 * sizeof(uint2);
    halves = kHasMinimum ? reinterpret_cast<const uint32_t*>(behind)[row]
                         : reinterpret_cast<const uint16_t*>(behind)[row];
  }

  // For 6 bits x is 128 + code, so that the offset is that of 160.
  __device__ ScaleAndOffset base(int i) const {
    const float d = half_of(halves & 0xffffu);
    if constexpr (kHasMinimum) {
      return {times_byte<0>(d, bytes.x, i), times_byte<0>(-half_of(halves >> 16), bytes.y, i)};
    } else {
      const float scale = times_byte<128>(d, i < 4 ? bytes.x : bytes.y, i % 4);
      return {scale, -160.0f * scale};
    }
  }
  __device__ uint32_t last_read() const { return bytes.y | halves; }

 private:
  __device__ static float half_of(uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(bits)));
  }
  // factor * (byte i of word - Zero), exactly: the byte becomes 2^15 + byte.
  template <int Zero>
  __device__ static float times_byte(float factor, uint32_t word, int i) {
    const float moved =
        __uint_as_float(__byte_perm(word, 0x47000000u, static_cast<uint32_t>(0x7404 | i << 4)));
    return fmaf(factor, moved, factor * -static_cast<float>(32768 + Zero));
  }
};

// A form as of dequant_codes.cuh, without scales of sums.
template <int Bits>
struct SuperForm {
  using Codes = SuperCodes<Bits>;
  using Base = ScaleAndOffset;
  static constexpr int kBits = Bits;
  static constexpr bool kHasMinimum = SuperScales<Bits>::kHasMinimum;
  static constexpr int kGroup = 0;
  static constexpr int kScaleBytes = 8 * (8 + (kHasMinimum ? 4 : 2));
  static constexpr int kBases = kHasMinimum ? 4 : 8;
  __device__ static Base base(const uint8_t* scales, int i) {
    SuperScales<Bits> own;
    own.load(scales);
    return own.base(i);
  }
};

}  // namespace foretoken::cuda
