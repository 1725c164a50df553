// GCC 12 warns falsely inside its own header, which leaves vectors undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "kernels/gemm/cpu/half_product.h"

namespace foretoken::cpu {
namespace {

struct Avx512HalfLanes {
  using Floats = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kVectors = 4;  // at once, with up to six rows

  static Floats floats(float value) { return _mm512_set1_ps(value); }
  static Floats load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* to, Floats v) { _mm512_storeu_ps(to, v); }
  static Floats halves(const uint16_t* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void prefetch(const uint16_t* at) {
    _mm_prefetch(reinterpret_cast<const char*>(at) + 2048, _MM_HINT_T0);
  }
};

}  // namespace

extern const HalfKernels kAvx512HalfKernels;
constexpr HalfKernels kAvx512HalfKernels = make_half_kernels<Avx512HalfLanes>("avx512");

}  // namespace foretoken::cpu
