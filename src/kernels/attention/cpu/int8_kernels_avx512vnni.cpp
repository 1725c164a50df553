// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "kernels/attention/cpu/int8_kernels.h"

#define FT_INT8_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu {
namespace {

constexpr int kStep = 32;  // codes that are widened together
constexpr int kKeys = 4;
constexpr int kQueries = 4;

FT_INT8_INLINE __mmask32 first_bits(int count) {
  return count >= kStep ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Lane i of the result is the sum of the lanes of v[i].
FT_INT8_INLINE __m128i sums_of_four(const __m512i (&v)[kKeys]) {
  const __m512i ab =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i cd =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const __m512i all =
      _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half =
      _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Four entries, of which `count` count, with kNum queries from the first on.
template <int kNum>
FT_INT8_INLINE void score_keys(const int8_t* const (&keys)[kKeys], int count, int dim,
                               const int16_t* queries, int64_t stride, int32_t* dots,
                               int64_t dot_stride) {
  __m512i sums[kNum][kKeys];
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
#pragma GCC unroll 4
    for (int i = 0; i < kKeys; ++i) sums[q][i] = _mm512_setzero_si512();
  }
  for (int d = 0; d < dim; d += kStep) {
    const __mmask32 live = first_bits(dim - d);
    __m512i wide[kKeys];
#pragma GCC unroll 4
    for (int i = 0; i < kKeys; ++i) {
      wide[i] = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(live, keys[i] + d));
    }
#pragma GCC unroll 4
    for (int q = 0; q < kNum; ++q) {
      const __m512i query = _mm512_maskz_loadu_epi16(live, queries + q * stride + d);
#pragma GCC unroll 4
      for (int i = 0; i < kKeys; ++i) {
        sums[q][i] = _mm512_dpwssd_epi32(sums[q][i], query, wide[i]);
      }
    }
  }
  const auto stored = static_cast<__mmask8>((1u << count) - 1);
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
    _mm_mask_storeu_epi32(dots + q * dot_stride, stored, sums_of_four(sums[q]));
  }
}

template <int kNum>
void score_queries(const Int8Entries& keys, const Int8Scores& scores, int first) {
  for (int i = 0; i < keys.count; i += kKeys) {
    const int count = keys.count - i < kKeys ? keys.count - i : kKeys;
    const int8_t* four[kKeys];
    for (int j = 0; j < kKeys; ++j) four[j] = keys.entries[i + (j < count ? j : 0)];
    score_keys<kNum>(four, count, keys.dim, scores.queries + first * scores.query_stride,
                     scores.query_stride, scores.dots + first * scores.dot_stride + i,
                     scores.dot_stride);
  }
}

void score(const Int8Entries& keys, const Int8Scores& scores) {
  int q = 0;
  for (; q + kQueries <= scores.num_queries; q += kQueries) score_queries<4>(keys, scores, q);
  if (q + 2 <= scores.num_queries) {
    score_queries<2>(keys, scores, q);
    q += 2;
  }
  if (q < scores.num_queries) score_queries<1>(keys, scores, q);
}

// kVectors vectors of 16 elements from element d on, the last one of `live` lanes.
template <int kNum, int kVectors>
void weigh_columns(const Int8Entries& values, const Int8Sums& sums, int first, int d,
                   __mmask16 live) {
  const float* weights = sums.weights + first * sums.weight_stride;
  __m512 total[kNum][kVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) total[q][j] = _mm512_setzero_ps();
  }
  for (int i = 0; i < values.count; ++i) {
    const int8_t* codes = values.entries[i] + d;
    __m512 value[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      const __mmask16 own = j + 1 < kVectors ? __mmask16{0xffff} : live;
      value[j] =
          _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(own, codes + 16 * j)));
    }
#pragma GCC unroll 4
    for (int q = 0; q < kNum; ++q) {
      const __m512 weight = _mm512_set1_ps(weights[q * sums.weight_stride + i]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        total[q][j] = _mm512_fmadd_ps(weight, value[j], total[q][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
    float* out = sums.out + (first + q) * sums.out_stride + d;
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      const __mmask16 own = j + 1 < kVectors ? __mmask16{0xffff} : live;
      _mm512_mask_storeu_ps(out + 16 * j, own, total[q][j]);
    }
  }
}

template <int kNum>
void weigh_queries(const Int8Entries& values, const Int8Sums& sums, int first) {
  constexpr __mmask16 kAll = 0xffff;
  int d = 0;
  for (; d + 64 <= values.dim; d += 64) weigh_columns<kNum, 4>(values, sums, first, d, kAll);
  for (; d + 16 <= values.dim; d += 16) weigh_columns<kNum, 1>(values, sums, first, d, kAll);
  if (d == values.dim) return;
  weigh_columns<kNum, 1>(values, sums, first, d,
                         static_cast<__mmask16>((1u << (values.dim - d)) - 1));
}

void weigh(const Int8Entries& values, const Int8Sums& sums) {
  int q = 0;
  for (; q + kQueries <= sums.num_queries; q += kQueries) weigh_queries<4>(values, sums, q);
  for (; q < sums.num_queries; ++q) weigh_queries<1>(values, sums, q);
}

}  // namespace

extern const Int8Kernels kAvx512VnniInt8Kernels;
constexpr Int8Kernels kAvx512VnniInt8Kernels = {"avx512_vnni", score, weigh};

}  // namespace foretoken::cpu
