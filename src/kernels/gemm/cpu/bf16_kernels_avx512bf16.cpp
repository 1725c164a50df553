// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <cstring>

#include "kernels/gemm/cpu/bf16_product_avx512.h"

namespace foretoken::cpu {
namespace {

FT_BF16_INLINE __m512bh pair_of(const uint16_t* x) {
  int32_t two;
  std::memcpy(&two, x, sizeof two);
  return (__m512bh)_mm512_set1_epi32(two);
}

template <int kRows, int kTiles>
FT_BF16_INLINE void add_step(const uint16_t* weights, const uint16_t* x, int64_t stride,
                             __m512 (&sums)[kRows][kTiles]) {
#pragma GCC unroll 2
  for (int pair = 0; pair < kBf16Step / 2; ++pair) {
    __m512bh w[kTiles];
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) {
      w[t] = (__m512bh)_mm512_loadu_si512(weights + t * kTileElements + pair * 2 * kBf16Lanes);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512bh two = pair_of(x + r * stride + 2 * pair);
#pragma GCC unroll 4
      for (int t = 0; t < kTiles; ++t) sums[r][t] = _mm512_dpbf16_ps(sums[r][t], two, w[t]);
    }
  }
}

// Both neighbours of k in one instruction.
struct PairAdder {
  template <int kRows, int kTiles>
  FT_BF16_INLINE static void add(const Piece& piece, const uint16_t* x, int64_t stride,
                                 __m512 (&sums)[kRows][kTiles]) {
    for (int64_t s = 0; s < piece.num_steps; ++s) {
      fetch_ahead(piece, s);
      add_step<kRows, kTiles>(piece.weights + s * kTiles * kTileElements, x + s * kBf16Step, stride,
                              sums);
    }
  }
};

}  // namespace

extern const Bf16Kernels kAvx512Bf16Kernels;
constexpr Bf16Kernels kAvx512Bf16Kernels{"avx512_bf16", multiply<PairAdder>};

}  // namespace foretoken::cpu
