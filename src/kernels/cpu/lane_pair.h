#pragma once
#include "kernels/cpu/lane_math.h"

// FT_AVX2 on a function: compiled for AVX2, beside an FT_HOT one that runs where has_lane_pairs()
// is false.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FT_AVX2 __attribute__((optimize("O3"), target("avx2")))
#define FT_HAS_AVX2_FUNCTIONS 1
#else
#define FT_AVX2
#define FT_HAS_AVX2_FUNCTIONS 0
#endif

namespace foretoken::cpu {

// Lanes as two halves, with the same bits. What a loop adds up in Lanes GCC keeps in memory where
// vectors have eight floats, at a fifth of the speed; these stay in registers. Functions are
// templates over the two: passed by reference only, as Lanes are.
struct LanePair {
  Octet low;
  Octet high;
};

// Whether this machine has vectors of eight floats, and no wider ones.
inline bool has_lane_pairs() {
#if FT_HAS_AVX2_FUNCTIONS
  return __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

FT_INLINE void load(Octet& out, const uint16_t* from) {
  typedef uint16_t OctetU16 __attribute__((vector_size(16)));
  OctetU16 half;
  std::memcpy(&half, from, sizeof half);
  out = reinterpret_cast<Octet>(__builtin_convertvector(half, OctetU32) << 16);
}
template <class T>
FT_INLINE void load(LanePair& out, const T* from) {
  load(out.low, from);
  load(out.high, from + kOctet);
}
FT_INLINE void store(float* to, const LanePair& lanes) {
  store(to, lanes.low);
  store(to + kOctet, lanes.high);
}

// sum += a * b; b: of the same kind, or one float for all.
template <class B>
FT_INLINE void add_product(Lanes& sum, const Lanes& a, const B& b) {
  sum += a * b;
}
FT_INLINE void add_product(LanePair& sum, const LanePair& a, const LanePair& b) {
  sum.low += a.low * b.low;
  sum.high += a.high * b.high;
}
FT_INLINE void add_product(LanePair& sum, const LanePair& a, float b) {
  sum.low += a.low * b;
  sum.high += a.high * b;
}

FT_INLINE float sum_lanes(const LanePair& v) {
  const Octet eight = v.low + v.high;
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

}  // namespace foretoken::cpu
