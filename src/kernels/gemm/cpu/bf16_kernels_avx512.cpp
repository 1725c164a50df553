// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include "kernels/gemm/cpu/bf16_product_avx512.h"

namespace foretoken::cpu {
namespace {

constexpr int kPieceLength = static_cast<int>(kMaxSteps) * kBf16Step;

// x as float: bfloat16 is the upper half of one.
template <int kRows>
FT_BF16_INLINE void widen(const uint16_t* x, int64_t stride, int count,
                          float (&wide)[kRows][kPieceLength]) {
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < count; i += 16) {
      const auto* from = reinterpret_cast<const __m256i*>(x + r * stride + i);
      const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16);
      _mm512_store_ps(&wide[r][i], _mm512_castsi512_ps(bits));
    }
  }
}

// One of two neighbours of k: the one below, or the one above.
template <int kAbove>
FT_BF16_INLINE __m512 half_of(const uint16_t* weights) {
  const __m512i both = _mm512_loadu_si512(weights);
  if constexpr (kAbove != 0) {
    return _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(int(0xffff0000u))));
  }
  return _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
}

template <int kAbove, int kRows, int kTiles>
FT_BF16_INLINE void add_half(const uint16_t* weights, const float (&x)[kRows][kPieceLength],
                             int64_t at, __m512 (&sums)[kRows][kTiles]) {
  __m512 w[kTiles];
#pragma GCC unroll 4
  for (int t = 0; t < kTiles; ++t) w[t] = half_of<kAbove>(weights + t * kTileElements);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m512 one = _mm512_set1_ps(x[r][at + kAbove]);
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) sums[r][t] = _mm512_fmadd_ps(one, w[t], sums[r][t]);
  }
}

// For processors without instructions for bfloat16: products of floats, one neighbour of k after
// the other.
struct WideAdder {
  template <int kRows, int kTiles>
  FT_BF16_INLINE static void add(const Piece& piece, const uint16_t* x, int64_t stride,
                                 __m512 (&sums)[kRows][kTiles]) {
    alignas(64) float wide[kRows][kPieceLength];
    widen<kRows>(x, stride, static_cast<int>(piece.num_steps) * kBf16Step, wide);
    for (int64_t s = 0; s < piece.num_steps; ++s) {
      fetch_ahead(piece, s);
      const uint16_t* weights = piece.weights + s * kTiles * kTileElements;
#pragma GCC unroll 2
      for (int i = 0; i < kBf16Step; i += 2) {
        add_half<0>(weights + i * kBf16Lanes, wide, s * kBf16Step + i, sums);
        add_half<1>(weights + i * kBf16Lanes, wide, s * kBf16Step + i, sums);
      }
    }
  }
};

}  // namespace

extern const Bf16Kernels kAvx512Kernels;
constexpr Bf16Kernels kAvx512Kernels{"avx512", multiply<WideAdder>};

}  // namespace foretoken::cpu
