#include <immintrin.h>

#include "kernels/attention/cpu/attention_lanes.h"

namespace foretoken::cpu {
namespace {

#define FT_LANES_INLINE inline __attribute__((always_inline))

constexpr int kStep = 32;  // of the elements of a key
constexpr int kOct = 8;    // floats of a vector

FT_LANES_INLINE __m256i load_whole(const uint16_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
FT_LANES_INLINE void store_whole(uint16_t* to, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}

// Transposes 8 vectors of 8 pairs.
FT_LANES_INLINE void transpose(__m256i (&v)[8]) {
  __m256i t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
    t[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = t[i];
}

// 8 pairs of 8 keys.
FT_LANES_INLINE void pack_octet(const uint16_t* const* keys, int d, uint16_t* to) {
  __m256i v[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    v[i] = keys[i] != nullptr ? load_whole(keys[i] + d) : _mm256_setzero_si256();
  }
  transpose(v);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) store_whole(to + i * kStep, v[i]);
}

void pack_keys(const uint16_t* const (&keys)[kKeysAtOnce], int dim, uint16_t* to,
               int64_t step_stride) {
  for (int d = 0; d < dim; d += kStep, to += step_stride) {
    for (int half = 0; half < 2; ++half) {
      uint16_t* pairs = to + half * 8 * kStep;
      pack_octet(keys, d + half * 16, pairs);
      pack_octet(keys + 8, d + half * 16, pairs + 16);
    }
  }
}

bool pack_value_pair(const uint16_t* first, const uint16_t* second, int dim, uint16_t* to,
                     int64_t stride) {
  const __m256i exponent = _mm256_set1_epi16(0x7f80);
  __m256i not_finite = _mm256_setzero_si256();
  for (int d = 0; d < dim; d += 16, to += stride) {
    const __m256i low = first != nullptr ? load_whole(first + d) : _mm256_setzero_si256();
    const __m256i high = second != nullptr ? load_whole(second + d) : _mm256_setzero_si256();
    for (const __m256i& v : {low, high}) {
      const __m256i highest = _mm256_cmpeq_epi16(_mm256_and_si256(v, exponent), exponent);
      not_finite = _mm256_or_si256(not_finite, highest);
    }
    const __m256i even = _mm256_unpacklo_epi16(low, high), odd = _mm256_unpackhi_epi16(low, high);
    store_whole(to, _mm256_permute2x128_si256(even, odd, 0x20));
    store_whole(to + 16, _mm256_permute2x128_si256(even, odd, 0x31));
  }
  return _mm256_testz_si256(not_finite, not_finite) != 0;
}

// Codes without a leading one have no exponent; the eight of them lie in a table.
void widen_e4m3(const uint8_t* codes, int count, uint16_t* out) {
  const __m256i small = _mm256_broadcastsi128_si256(
      _mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
  const __m256i bias = _mm256_set1_epi16(120 << 7), nan = _mm256_set1_epi16(0x7fc0);
  const __m256i bytes = _mm256_set1_epi16(0x0202), above = _mm256_set1_epi16(0x0100);
  for (int i = 0; i < count; i += 16) {
    const __m256i wide =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
    __m256i bits = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), bias);
    const __m256i place = _mm256_add_epi16(_mm256_mullo_epi16(magnitude, bytes), above);
    const __m256i is_small = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
    bits = _mm256_blendv_epi8(bits, _mm256_shuffle_epi8(small, place), is_small);
    const __m256i is_nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    bits = _mm256_blendv_epi8(bits, nan, is_nan);
    const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(wide, magnitude), 8);
    store_whole(out + i, _mm256_or_si256(bits, sign));
  }
}

// e^x for x <= 0; zero below -87. NaN stays NaN.
FT_LANES_INLINE __m256 exp_nonpositive(__m256 x) {
  const __m256 lowest = _mm256_set1_ps(-87.0f);
  const __m256 is_zero = _mm256_cmp_ps(x, lowest, _CMP_LT_OQ);
  x = _mm256_blendv_ps(x, lowest, is_zero);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  const __m256 y = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  const __m256i power = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  const __m256 scaled = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(power, 23)));
  return _mm256_andnot_ps(is_zero, scaled);
}

// To the nearest bfloat16, ties to even, as the upper halves of floats.
FT_LANES_INLINE __m256i rounded_halves(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(sum, _mm256_set1_epi32(0x7fc00000), is_nan);
  return _mm256_and_si256(chosen, _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
}

// All bits of the lanes of the vector at `at` that lie in [begin, end).
FT_LANES_INLINE __m256 inside(int at, int begin, int end) {
  const __m256i place =
      _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(at));
  const __m256i too_low = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), place);
  const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), place);
  return _mm256_castsi256_ps(_mm256_andnot_si256(too_low, below));
}

FT_LANES_INLINE float sum_of(__m256 v) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

FT_LANES_INLINE float highest_of(__m256 v) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

SoftWeights soften(const float* scores, int begin, int end, int from, int to, uint16_t* weights) {
  const __m256 least = _mm256_set1_ps(-__builtin_inff());
  __m256 highest = least;
  for (int at = from; at < to; at += kOct) {
    const __m256 live = inside(at, begin, end);
    highest = _mm256_max_ps(_mm256_blendv_ps(least, _mm256_loadu_ps(scores + at), live), highest);
  }
  const float max = highest_of(highest);
  __m256 sums = _mm256_setzero_ps();
  for (int at = from; at < to; at += 2 * kOct) {
    __m256i halves[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256 live = inside(at + i * kOct, begin, end);
      const __m256 score = _mm256_and_ps(live, _mm256_loadu_ps(scores + at + i * kOct));
      const __m256 exact = exp_nonpositive(_mm256_sub_ps(score, _mm256_set1_ps(max)));
      halves[i] = rounded_halves(_mm256_and_ps(live, exact));
      sums = _mm256_add_ps(sums, _mm256_castsi256_ps(halves[i]));
    }
    const __m256i packed =
        _mm256_packus_epi32(_mm256_srli_epi32(halves[0], 16), _mm256_srli_epi32(halves[1], 16));
    store_whole(weights + at, _mm256_permute4x64_epi64(packed, 0xd8));
  }
  return {max, sum_of(sums)};
}

}  // namespace

extern const AttentionLanes kAvx2AttentionLanes;
constexpr AttentionLanes kAvx2AttentionLanes{"avx2", pack_keys, pack_value_pair, widen_e4m3,
                                             soften};

}  // namespace foretoken::cpu
