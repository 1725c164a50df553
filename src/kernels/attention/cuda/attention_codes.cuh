#pragma once
#include "kernels/attention/kv_layer.h"
#include "kernels/cuda/mma.cuh"

// Codes of KvFormat::kFp8 and kInt8 as operands of the tensor cores. A word of shared memory holds
// the codes of four neighbouring dimensions; widened, they are two pairs of bfloat16: those of the
// even dimensions and those of the odd ones. So of each 16 dimensions the even ones come first,
// then the odd ones: queries are turned into that order for the products with keys, and so the
// results come out of the products with values. All kernels keep it, for the order of a sum is part
// of its bits.
namespace foretoken::cuda {

struct WidenedCodes {
  uint32_t even;  // the first and third of four, the first in the low half
  uint32_t odd;
};

// Times 2^120, by which the exponents of codes in place of bfloat16's are too low.
__device__ inline uint32_t raise_exponents(uint32_t pair) {
  uint32_t raised;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(raised)
      : "r"(pair), "r"(0x7b807b80u), "r"(0x80008000u));
  return raised;
}

// Exactly what e4m3_value gives; only the codes of NaN become 480 with their sign, so that what
// lies behind the last position can be multiplied by zero.
__device__ inline WidenedCodes widen_codes(uint32_t four) {
  return {raise_exponents((four << 8 & 0x80008000u) | (four << 4 & 0x07f007f0u)),
          raise_exponents((four & 0x80008000u) | (four >> 4 & 0x07f007f0u))};
}

// Pairs of 128 and the seven low bits of a code, less 128, or 256 where the code is negative.
__device__ inline uint32_t signed_pair(uint32_t codes) {
  constexpr uint32_t k128 = 0x43004300, kOne = 0x3f803f80;
  uint32_t pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(pair)
      : "r"((codes & 0x00800080u) | k128), "r"(kOne ^ 0x80008000u),
        "r"((codes & 0x007f007fu) | k128));
  return pair;
}

// The same of KvFormat::kInt8, without the scales of entries.
__device__ inline WidenedCodes widen_integers(uint32_t four) {
  return {signed_pair(four), signed_pair(four >> 8)};
}

template <KvFormat Format>
__device__ WidenedCodes widen(uint32_t four) {
  if constexpr (Format == KvFormat::kInt8) return widen_integers(four);
  return widen_codes(four);
}

// Of two words of two dimensions each, the even and the odd ones.
__device__ inline uint32_t even_of(uint32_t low, uint32_t high) {
  return __byte_perm(low, high, 0x5410);
}
__device__ inline uint32_t odd_of(uint32_t low, uint32_t high) {
  return __byte_perm(low, high, 0x7632);
}

// Of 16 dimensions.
__device__ inline uint4 evens_of(uint4 low, uint4 high) {
  return {even_of(low.x, low.y), even_of(low.z, low.w), even_of(high.x, high.y),
          even_of(high.z, high.w)};
}
__device__ inline uint4 odds_of(uint4 low, uint4 high) {
  return {odd_of(low.x, low.y), odd_of(low.z, low.w), odd_of(high.x, high.y),
          odd_of(high.z, high.w)};
}

}  // namespace foretoken::cuda
