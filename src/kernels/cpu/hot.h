#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bfloat16.h"
#include "device/dtype.h"

// FT_HOT on a function: optimised further than the rest and compiled for AVX-512, AVX2 and the
// baseline, chosen when the program is loaded. Lambdas inside it are not. Its loops must not need
// reordered float additions: where they may be split, the partial sums are written out.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FT_HOT __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define FT_HOT
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu {

// Sixteen floats at once, whatever the machine's vectors are: the order of partial sums is part of
// the source. Passed by reference only, so that the calling convention does not matter.
inline constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t LanesU32 __attribute__((vector_size(64)));
typedef uint16_t LanesU16 __attribute__((vector_size(32)));

FT_INLINE void load(Lanes& out, const float* from) { std::memcpy(&out, from, sizeof out); }
FT_INLINE void load(Lanes& out, const uint16_t* from) {
  LanesU16 half;
  std::memcpy(&half, from, sizeof half);
  const LanesU32 wide = __builtin_convertvector(half, LanesU32) << 16;
  std::memcpy(&out, &wide, sizeof out);
}
FT_INLINE void load(Lanes& out, const int8_t* from) {
  typedef int8_t LanesI8 __attribute__((vector_size(16)));
  typedef int32_t LanesI32 __attribute__((vector_size(64)));
  LanesI8 codes;
  std::memcpy(&codes, from, sizeof codes);
  out = __builtin_convertvector(__builtin_convertvector(codes, LanesI32), Lanes);
}
FT_INLINE void store(float* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }
FT_INLINE void store(uint16_t* to, const Lanes& lanes) {
  LanesU32 bits;
  std::memcpy(&bits, &lanes, sizeof bits);
  const LanesU32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const LanesU32 is_nan = reinterpret_cast<LanesU32>((bits & 0x7fffffffu) > 0x7f800000u);
  const LanesU32 chosen = (is_nan & ((bits >> 16) | 0x40u)) | (~is_nan & rounded);
  const LanesU16 half = __builtin_convertvector(chosen, LanesU16);
  std::memcpy(to, &half, sizeof half);
}

FT_INLINE float load_one(const float* from) { return *from; }
FT_INLINE float load_one(const uint16_t* from) { return bf16_to_float(*from); }
FT_INLINE float load_one(const int8_t* from) { return *from; }
FT_INLINE void store_one(float* to, float value) { *to = value; }
FT_INLINE void store_one(uint16_t* to, float value) { *to = bf16_from_float(value); }

// Sum of the lanes in one fixed order: halves, quarters, and so on.
FT_INLINE float sum_lanes(const Lanes& v) {
  const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

FT_INLINE float sum_of_squares(const float* x, int n) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, x + i);
    sum += lanes * lanes;
  }
  float total = sum_lanes(sum);
  for (; i < n; ++i) total += x[i] * x[i];
  return total;
}

}  // namespace foretoken::cpu
