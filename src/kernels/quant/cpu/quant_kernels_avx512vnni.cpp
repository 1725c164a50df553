// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <cstring>

#include "kernels/quant/cpu/quant_product.h"

namespace foretoken::cpu {
namespace {

struct Avx512Vnni {
  using Floats = __m512;
  using Ints = __m512i;
  using Codes = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kMaxRows = 8;
  template <int kBits>
  static constexpr int kPartialDots = 0;
  static constexpr bool kCentresBytes = false;

  static FT_QUANT_INLINE Floats floats(float value) { return _mm512_set1_ps(value); }
  static FT_QUANT_INLINE Ints ints(int32_t value) { return _mm512_set1_epi32(value); }
  static FT_QUANT_INLINE Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
  static FT_QUANT_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static FT_QUANT_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static FT_QUANT_INLINE Floats subtract_product(Floats c, Floats a, Floats b) {
    return _mm512_fnmadd_ps(a, b, c);
  }
  static FT_QUANT_INLINE Floats load(const float* at) { return _mm512_loadu_ps(at); }
  static FT_QUANT_INLINE void store(float* to, Floats v) { _mm512_storeu_ps(to, v); }

  static FT_QUANT_INLINE Codes load_codes(const uint8_t* at) { return _mm512_loadu_si512(at); }
  static FT_QUANT_INLINE Codes low4(Codes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
  static FT_QUANT_INLINE Codes high4(Codes v) {
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
  }
  static FT_QUANT_INLINE Codes with_bits_4_and_5(Codes four, Codes two, int place) {
    const Codes moved = place == 0   ? _mm512_slli_epi16(two, 4)
                        : place == 1 ? _mm512_slli_epi16(two, 2)
                        : place == 2 ? two
                                     : _mm512_srli_epi16(two, 2);
    return _mm512_ternarylogic_epi32(four, moved, _mm512_set1_epi8(48), 0xf8);  // a | (b & c)
  }
  // Whole bytes of a vector of words, whose bits the caller masks; -5 <= left <= 4.
  static FT_QUANT_INLINE Codes moved(Codes v, int left) {
    return left == 4    ? _mm512_slli_epi16(v, 4)
           : left == 3  ? _mm512_slli_epi16(v, 3)
           : left == 2  ? _mm512_slli_epi16(v, 2)
           : left == 1  ? _mm512_slli_epi16(v, 1)
           : left == 0  ? v
           : left == -1 ? _mm512_srli_epi16(v, 1)
           : left == -2 ? _mm512_srli_epi16(v, 2)
           : left == -3 ? _mm512_srli_epi16(v, 3)
           : left == -4 ? _mm512_srli_epi16(v, 4)
                        : _mm512_srli_epi16(v, 5);
  }
  static FT_QUANT_INLINE Codes two_bits(Codes v, int place) {
    const Codes low = place < 3 ? moved(v, -2 * place) : _mm512_srli_epi16(v, 6);
    return _mm512_and_si512(low, _mm512_set1_epi8(3));
  }
  template <int kTo>
  static FT_QUANT_INLINE Codes with_bit(Codes low, Codes ones, int place) {
    return _mm512_ternarylogic_epi32(low, moved(ones, kTo - place), _mm512_set1_epi8(1 << kTo),
                                     0xf8);  // a | (b & c)
  }
  static FT_QUANT_INLINE Codes look_up(Codes codes, const uint8_t* table) {
    const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), codes);
  }
  template <int kBits>
  static FT_QUANT_INLINE Ints dot(Ints sums, Codes codes, const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(four));
  }

  static FT_QUANT_INLINE Floats halves(const uint8_t* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static FT_QUANT_INLINE Floats bytes(const uint8_t* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  }
  static FT_QUANT_INLINE Floats signed_bytes(const uint8_t* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  static FT_QUANT_INLINE void prefetch(const uint8_t* at, int count) {
    for (int i = 0; i < count; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + 4096 + i), _MM_HINT_T0);
    }
  }
};

}  // namespace

extern const QuantKernels kAvx512VnniKernels;
constexpr QuantKernels kAvx512VnniKernels = make_kernels<Avx512Vnni>("avx512_vnni");

}  // namespace foretoken::cpu
