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

}  // namespace
}  // namespace foretoken::cpu
