#include "kernels/quant/cpu/quant_lanes_avx.h"

namespace foretoken::cpu {
namespace {

struct AvxVnni : AvxLanes {
  template <int kBits>
  static FT_QUANT_INLINE Ints dot(Ints sums, Codes codes, const int8_t* x) {
    return _mm256_dpbusd_avx_epi32(sums, codes, four_codes(x));
  }
};

}  // namespace

extern const QuantKernels kAvxVnniKernels;
constexpr QuantKernels kAvxVnniKernels = make_paired_kernels<AvxVnni>("avx_vnni");

}  // namespace foretoken::cpu
