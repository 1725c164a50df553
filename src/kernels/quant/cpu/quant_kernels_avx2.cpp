#include "kernels/quant/cpu/quant_lanes_avx.h"

namespace foretoken::cpu {
namespace {

struct Avx2 : AvxLanes {
  static constexpr int kMaxRows = 8;
  // Partials are sums of two products each, of sixteen bits: |x| is at most 127.
  template <int kBits>
  static constexpr int kPartialDots = kBits < 8 ? 32767 / (2 * ((1 << kBits) - 1) * 127) : 0;
  static constexpr bool kCentresBytes = true;

  template <int kBits>
  static FT_QUANT_INLINE Partials add_dot(Partials partials, Codes codes, const int8_t* x) {
    partials = _mm256_add_epi16(partials, _mm256_maddubs_epi16(codes, four_codes(x)));
    // Otherwise the compiler adds in an order of its own, for which it keeps all products in
    // memory.
    asm("" : "+x"(partials));
    return partials;
  }
  static FT_QUANT_INLINE Ints fold(Ints sums, Partials partials) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(partials, _mm256_set1_epi16(1)));
  }

  // |w| times x with the sign of w: two products of eight bits fit into sixteen then.
  template <int kBits>
  static FT_QUANT_INLINE Ints dot(Ints sums, Codes codes, const int8_t* x) {
    static_assert(kBits == 8);
    const Codes weights = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    const Codes signed_x = _mm256_sign_epi8(four_codes(x), weights);
    return fold(sums, _mm256_maddubs_epi16(_mm256_abs_epi8(weights), signed_x));
  }
};

}  // namespace

extern const QuantKernels kAvx2Kernels;
constexpr QuantKernels kAvx2Kernels = make_paired_kernels<Avx2>("avx2");

}  // namespace foretoken::cpu
