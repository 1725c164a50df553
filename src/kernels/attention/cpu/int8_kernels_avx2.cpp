#include <immintrin.h>

#include "kernels/attention/cpu/int8_kernels.h"

#define FT_INT8_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu {
namespace {

constexpr int kStep = 16;  // codes that are widened together
constexpr int kQueries = 4;

FT_INT8_INLINE __m256i load_codes(const int8_t* at) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

FT_INT8_INLINE int32_t sum_of(__m256i v) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

template <int kNum>
void score_queries(const Int8Entries& keys, const Int8Scores& scores, int first) {
  const int16_t* queries = scores.queries + first * scores.query_stride;
  int32_t* dots = scores.dots + first * scores.dot_stride;
  for (int i = 0; i < keys.count; ++i) {
    const int8_t* key = keys.entries[i];
    __m256i sums[kNum];
#pragma GCC unroll 4
    for (int q = 0; q < kNum; ++q) sums[q] = _mm256_setzero_si256();
    int d = 0;
    for (; d + kStep <= keys.dim; d += kStep) {
      const __m256i wide = load_codes(key + d);
#pragma GCC unroll 4
      for (int q = 0; q < kNum; ++q) {
        const __m256i query = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(queries + q * scores.query_stride + d));
        sums[q] = _mm256_add_epi32(sums[q], _mm256_madd_epi16(query, wide));
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < kNum; ++q) {
      int32_t sum = sum_of(sums[q]);
      for (int e = d; e < keys.dim; ++e) sum += queries[q * scores.query_stride + e] * key[e];
      dots[q * scores.dot_stride + i] = sum;
    }
  }
}

void score(const Int8Entries& keys, const Int8Scores& scores) {
  int q = 0;
  for (; q + kQueries <= scores.num_queries; q += kQueries) score_queries<4>(keys, scores, q);
  for (; q < scores.num_queries; ++q) score_queries<1>(keys, scores, q);
}

// kVectors vectors of 8 elements from element d on.
template <int kNum, int kVectors>
void weigh_columns(const Int8Entries& values, const Int8Sums& sums, int first, int d) {
  const float* weights = sums.weights + first * sums.weight_stride;
  __m256 total[kNum][kVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) total[q][j] = _mm256_setzero_ps();
  }
  for (int i = 0; i < values.count; ++i) {
    const int8_t* codes = values.entries[i] + d;
    __m256 value[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      value[j] = _mm256_cvtepi32_ps(
          _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + 8 * j))));
    }
#pragma GCC unroll 4
    for (int q = 0; q < kNum; ++q) {
      const __m256 weight = _mm256_set1_ps(weights[q * sums.weight_stride + i]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        total[q][j] = _mm256_fmadd_ps(weight, value[j], total[q][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kNum; ++q) {
    float* out = sums.out + (first + q) * sums.out_stride + d;
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) _mm256_storeu_ps(out + 8 * j, total[q][j]);
  }
}

void weigh_one_column(const Int8Entries& values, const Int8Sums& sums, int query, int d) {
  const float* weights = sums.weights + query * sums.weight_stride;
  float total = 0;
  for (int i = 0; i < values.count; ++i) {
    total = __builtin_fmaf(weights[i], static_cast<float>(values.entries[i][d]), total);
  }
  sums.out[query * sums.out_stride + d] = total;
}

template <int kNum>
void weigh_queries(const Int8Entries& values, const Int8Sums& sums, int first) {
  int d = 0;
  for (; d + 16 <= values.dim; d += 16) weigh_columns<kNum, 2>(values, sums, first, d);
  for (; d + 8 <= values.dim; d += 8) weigh_columns<kNum, 1>(values, sums, first, d);
  for (; d < values.dim; ++d) {
    for (int q = 0; q < kNum; ++q) weigh_one_column(values, sums, first + q, d);
  }
}

void weigh(const Int8Entries& values, const Int8Sums& sums) {
  int q = 0;
  for (; q + kQueries <= sums.num_queries; q += kQueries) weigh_queries<4>(values, sums, q);
  for (; q < sums.num_queries; ++q) weigh_queries<1>(values, sums, q);
}

}  // namespace

extern const Int8Kernels kAvx2Int8Kernels;
constexpr Int8Kernels kAvx2Int8Kernels = {"avx2", score, weigh};

}  // namespace foretoken::cpu
