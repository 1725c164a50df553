#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/quant/cpu/quant_product.h"

// Eight columns at once; how codes are multiplied is left to the file that includes this.
namespace foretoken::cpu {
namespace {

struct AvxLanes {
  using Floats = __m256;
  using Ints = __m256i;
  using Codes = __m256i;
  using Partials = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kMaxRows = 4;
  template <int kBits>
  static constexpr int kPartialDots = 0;
  static constexpr bool kCentresBytes = false;

  static FT_QUANT_INLINE Floats floats(float value) { return _mm256_set1_ps(value); }
  static FT_QUANT_INLINE Ints ints(int32_t value) { return _mm256_set1_epi32(value); }
  static FT_QUANT_INLINE Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
  static FT_QUANT_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static FT_QUANT_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static FT_QUANT_INLINE Floats subtract_product(Floats c, Floats a, Floats b) {
    return _mm256_fnmadd_ps(a, b, c);
  }
  static FT_QUANT_INLINE Floats load(const float* at) { return _mm256_loadu_ps(at); }
  static FT_QUANT_INLINE void store(float* to, Floats v) { _mm256_storeu_ps(to, v); }

  static FT_QUANT_INLINE Codes load_codes(const uint8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static FT_QUANT_INLINE Codes low4(Codes v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
  static FT_QUANT_INLINE Codes high4(Codes v) {
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
  }
  static FT_QUANT_INLINE Codes with_bits_4_and_5(Codes four, Codes two, int place) {
    const Codes moved = place == 0   ? _mm256_slli_epi16(two, 4)
                        : place == 1 ? _mm256_slli_epi16(two, 2)
                        : place == 2 ? two
                                     : _mm256_srli_epi16(two, 2);
    return _mm256_or_si256(four, _mm256_and_si256(moved, _mm256_set1_epi8(48)));
  }
  // Whole bytes of a vector of words, whose bits the caller masks; -5 <= left <= 4.
  static FT_QUANT_INLINE Codes moved(Codes v, int left) {
    return left == 4    ? _mm256_slli_epi16(v, 4)
           : left == 3  ? _mm256_slli_epi16(v, 3)
           : left == 2  ? _mm256_slli_epi16(v, 2)
           : left == 1  ? _mm256_slli_epi16(v, 1)
           : left == 0  ? v
           : left == -1 ? _mm256_srli_epi16(v, 1)
           : left == -2 ? _mm256_srli_epi16(v, 2)
           : left == -3 ? _mm256_srli_epi16(v, 3)
           : left == -4 ? _mm256_srli_epi16(v, 4)
                        : _mm256_srli_epi16(v, 5);
  }
  static FT_QUANT_INLINE Codes two_bits(Codes v, int place) {
    const Codes low = place < 3 ? moved(v, -2 * place) : _mm256_srli_epi16(v, 6);
    return _mm256_and_si256(low, _mm256_set1_epi8(3));
  }
  template <int kTo>
  static FT_QUANT_INLINE Codes with_bit(Codes low, Codes ones, int place) {
    const Codes bit = _mm256_and_si256(moved(ones, kTo - place), _mm256_set1_epi8(1 << kTo));
    return _mm256_or_si256(low, bit);
  }
  static FT_QUANT_INLINE Codes look_up(Codes codes, const uint8_t* table) {
    const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), codes);
  }
  static FT_QUANT_INLINE Codes four_codes(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
  }

  static FT_QUANT_INLINE Floats halves(const uint8_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static FT_QUANT_INLINE Floats bytes(const uint8_t* at) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  }
  static FT_QUANT_INLINE Floats signed_bytes(const uint8_t* at) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  static FT_QUANT_INLINE void prefetch(const uint8_t* at, int count) {
    for (int i = 0; i < count; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + 4096 + i), _MM_HINT_T0);
    }
  }
};

struct FloatsPair {
  __m256 low, high;
};
struct IntsPair {
  __m256i low, high;
};

// The sixteen columns of a block at once, as two of V. Few rows leave registers for it: what V
// alone would read in two passes over k, one after the other, comes from memory evenly, and x is
// read once. The same operations on the same columns, so that bits are V's.
template <class V>
struct PairLanes {
  using Floats = FloatsPair;
  using Ints = IntsPair;
  using Codes = IntsPair;
  using Partials = IntsPair;
  static constexpr int kLanes = 2 * V::kLanes;
  static constexpr int kMaxRows = V::kMaxRows < 6 ? V::kMaxRows : 6;  // more take all registers
  template <int kBits>
  static constexpr int kPartialDots = V::template kPartialDots<kBits>;
  static constexpr bool kCentresBytes = V::kCentresBytes;

  static FT_QUANT_INLINE Floats floats(float value) { return {V::floats(value), V::floats(value)}; }
  static FT_QUANT_INLINE Ints ints(int32_t value) { return {V::ints(value), V::ints(value)}; }
  static FT_QUANT_INLINE Floats to_floats(Ints v) {
    return {V::to_floats(v.low), V::to_floats(v.high)};
  }
  static FT_QUANT_INLINE Floats multiply(Floats a, Floats b) {
    return {V::multiply(a.low, b.low), V::multiply(a.high, b.high)};
  }
  static FT_QUANT_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
    return {V::multiply_add(a.low, b.low, c.low), V::multiply_add(a.high, b.high, c.high)};
  }
  static FT_QUANT_INLINE Floats subtract_product(Floats c, Floats a, Floats b) {
    return {V::subtract_product(c.low, a.low, b.low), V::subtract_product(c.high, a.high, b.high)};
  }
  static FT_QUANT_INLINE Floats load(const float* at) {
    return {V::load(at), V::load(at + V::kLanes)};
  }
  static FT_QUANT_INLINE void store(float* to, Floats v) {
    V::store(to, v.low);
    V::store(to + V::kLanes, v.high);
  }

  static FT_QUANT_INLINE Codes load_codes(const uint8_t* at) {
    return {V::load_codes(at), V::load_codes(at + 4 * V::kLanes)};
  }
  static FT_QUANT_INLINE Codes low4(Codes v) { return {V::low4(v.low), V::low4(v.high)}; }
  static FT_QUANT_INLINE Codes high4(Codes v) { return {V::high4(v.low), V::high4(v.high)}; }
  static FT_QUANT_INLINE Codes with_bits_4_and_5(Codes four, Codes two, int place) {
    return {V::with_bits_4_and_5(four.low, two.low, place),
            V::with_bits_4_and_5(four.high, two.high, place)};
  }
  static FT_QUANT_INLINE Codes two_bits(Codes v, int place) {
    return {V::two_bits(v.low, place), V::two_bits(v.high, place)};
  }
  template <int kTo>
  static FT_QUANT_INLINE Codes with_bit(Codes low, Codes ones, int place) {
    return {V::template with_bit<kTo>(low.low, ones.low, place),
            V::template with_bit<kTo>(low.high, ones.high, place)};
  }
  static FT_QUANT_INLINE Codes look_up(Codes codes, const uint8_t* table) {
    return {V::look_up(codes.low, table), V::look_up(codes.high, table)};
  }
  template <int kBits>
  static FT_QUANT_INLINE Ints dot(Ints sums, Codes codes, const int8_t* x) {
    return {V::template dot<kBits>(sums.low, codes.low, x),
            V::template dot<kBits>(sums.high, codes.high, x)};
  }
  template <int kBits>
  static FT_QUANT_INLINE Partials add_dot(Partials partials, Codes codes, const int8_t* x) {
    return {V::template add_dot<kBits>(partials.low, codes.low, x),
            V::template add_dot<kBits>(partials.high, codes.high, x)};
  }
  static FT_QUANT_INLINE Ints fold(Ints sums, Partials partials) {
    return {V::fold(sums.low, partials.low), V::fold(sums.high, partials.high)};
  }

  static FT_QUANT_INLINE Floats halves(const uint8_t* at) {
    return {V::halves(at), V::halves(at + 2 * V::kLanes)};
  }
  static FT_QUANT_INLINE Floats bytes(const uint8_t* at) {
    return {V::bytes(at), V::bytes(at + V::kLanes)};
  }
  static FT_QUANT_INLINE Floats signed_bytes(const uint8_t* at) {
    return {V::signed_bytes(at), V::signed_bytes(at + V::kLanes)};
  }
  static FT_QUANT_INLINE void prefetch(const uint8_t* at, int count) { V::prefetch(at, count); }
};

// V's kernels, those of few rows with all columns of a block at once.
template <class V>
constexpr QuantKernels make_paired_kernels(const char* name) {
  QuantKernels kernels = make_kernels<V>(name);
  set_products<PairLanes<V>, 1>(kernels);
  return kernels;
}

}  // namespace
}  // namespace foretoken::cpu
