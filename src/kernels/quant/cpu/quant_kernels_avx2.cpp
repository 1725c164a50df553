#include "kernels/quant/cpu/quant_lanes_avx.h"

namespace foretoken::cpu {
namespace {

struct Avx2 : AvxLanes {
  template <int kBits>
  static FT_QUANT_INLINE Ints dot(Ints sums, Codes codes, const int8_t* x) {
    const Codes four = four_codes(x);
    if constexpr (kBits < 8) {
      const __m256i pairs = _mm256_maddubs_epi16(codes, four);
      return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    } else {
      // Sums of two products of eight bits would not fit into sixteen.
      const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(255));
      const __m256i odd = _mm256_srli_epi16(codes, 8);
      const __m256i even_x = _mm256_srai_epi16(_mm256_slli_epi16(four, 8), 8);
      const __m256i odd_x = _mm256_srai_epi16(four, 8);
      const __m256i products =
          _mm256_add_epi32(_mm256_madd_epi16(even, even_x), _mm256_madd_epi16(odd, odd_x));
      return _mm256_add_epi32(sums, products);
    }
  }
};

}  // namespace

extern const QuantKernels kAvx2Kernels;
constexpr QuantKernels kAvx2Kernels = make_kernels<Avx2>("avx2");

}  // namespace foretoken::cpu
