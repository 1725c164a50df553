// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "kernels/attention/cpu/attention_lanes.h"

namespace foretoken::cpu {
namespace {

constexpr int kStep = 32;  // of the elements of a key

// Transposes 16 vectors of 16 pairs.
void transpose(__m512i (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

// e^x for x <= 0; zero below -87. NaN stays NaN.
inline __attribute__((always_inline)) __m512 exp_nonpositive(__m512 x) {
  const __m512 lowest = _mm512_set1_ps(-87.0f);
  const __mmask16 is_zero = _mm512_cmp_ps_mask(x, lowest, _CMP_LT_OQ);
  x = _mm512_mask_mov_ps(x, is_zero, lowest);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), 0);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  const __m512 y = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
  return _mm512_mask_mov_ps(_mm512_scalef_ps(y, n), is_zero, _mm512_setzero_ps());
}

// To the nearest bfloat16, ties to even.
inline __attribute__((always_inline)) __m256i rounded_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  sum = _mm512_mask_mov_epi32(sum, is_nan, _mm512_set1_epi32(0x7fc00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(sum, 16));
}

// Lanes of the vector at `at` that lie in [begin, end).
inline __mmask16 inside(int at, int begin, int end) {
  const int low = begin > at ? begin - at : 0;
  const int high = end < at + 16 ? end - at : 16;
  if (low >= high) return 0;
  return static_cast<__mmask16>((0xffffu >> (16 - high)) & (0xffffu << low));
}

void pack_keys(const uint16_t* const (&keys)[kKeysAtOnce], int dim, uint16_t* to,
               int64_t step_stride) {
  for (int d = 0; d < dim; d += kStep, to += step_stride) {
    __m512i v[kKeysAtOnce];
    for (int i = 0; i < kKeysAtOnce; ++i) {
      v[i] = keys[i] != nullptr ? _mm512_loadu_si512(keys[i] + d) : _mm512_setzero_si512();
    }
    transpose(v);
    for (int i = 0; i < kKeysAtOnce; ++i) _mm512_storeu_si512(to + i * kStep, v[i]);
  }
}

bool pack_value_pair(const uint16_t* first, const uint16_t* second, int dim, uint16_t* to,
                     int64_t stride) {
  const __m256i exponent = _mm256_set1_epi16(0x7f80);
  __mmask16 not_finite = 0;
  for (int d = 0; d < dim; d += 16, to += stride) {
    const auto load = [d](const uint16_t* from) {
      return from != nullptr ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + d))
                             : _mm256_setzero_si256();
    };
    const __m256i low = load(first), high = load(second);
    not_finite |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(low, exponent), exponent);
    not_finite |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(high, exponent), exponent);
    const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
    _mm512_storeu_si512(to, _mm512_or_si512(wide, _mm512_cvtepu16_epi32(low)));
  }
  return not_finite == 0;
}

// Codes without a leading one have no exponent; the eight of them lie in a table.
void widen_e4m3(const uint8_t* codes, int count, uint16_t* out) {
  alignas(64) static constexpr uint16_t kSmall[32] = {0,      0x3b00, 0x3b80, 0x3bc0,
                                                      0x3c00, 0x3c20, 0x3c40, 0x3c60};
  const __m512i small = _mm512_load_si512(kSmall);
  const __m512i bias = _mm512_set1_epi16(120 << 7), nan = _mm512_set1_epi16(0x7fc0);
  for (int i = 0; i < count; i += 32) {
    const __m512i wide =
        _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i)));
    const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi16(0x7f));
    __m512i bits = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), bias);
    const __mmask32 is_small = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
    bits = _mm512_mask_permutexvar_epi16(bits, is_small, magnitude, small);
    bits = _mm512_mask_mov_epi16(bits, _mm512_cmpeq_epu16_mask(magnitude, _mm512_set1_epi16(0x7f)),
                                 nan);
    const __m512i sign = _mm512_slli_epi16(_mm512_sub_epi16(wide, magnitude), 8);
    _mm512_storeu_si512(out + i, _mm512_or_si512(bits, sign));
  }
}

SoftWeights soften(const float* scores, int begin, int end, int from, int to, uint16_t* weights) {
  const __m512 least = _mm512_set1_ps(-__builtin_inff());
  __m512 highest = least;
  for (int at = from; at < to; at += 16) {
    highest =
        _mm512_max_ps(_mm512_mask_loadu_ps(least, inside(at, begin, end), scores + at), highest);
  }
  const float max = _mm512_reduce_max_ps(highest);
  __m512 sums = _mm512_setzero_ps();
  for (int at = from; at < to; at += 16) {
    const __mmask16 live = inside(at, begin, end);
    const __m512 score = _mm512_maskz_loadu_ps(live, scores + at);
    const __m512 exact = exp_nonpositive(_mm512_sub_ps(score, _mm512_set1_ps(max)));
    const __m256i rounded = rounded_to_bf16(_mm512_maskz_mov_ps(live, exact));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + at), rounded);
    const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16);
    sums = _mm512_add_ps(sums, _mm512_castsi512_ps(wide));
  }
  return {max, _mm512_reduce_add_ps(sums)};
}

}  // namespace

extern const AttentionLanes kAvx512AttentionLanes;
constexpr AttentionLanes kAvx512AttentionLanes{"avx512", pack_keys, pack_value_pair, widen_e4m3,
                                               soften};

}  // namespace foretoken::cpu
