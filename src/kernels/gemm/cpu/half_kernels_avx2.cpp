#include <immintrin.h>

#include "kernels/gemm/cpu/half_product.h"

namespace foretoken::cpu {
namespace {

struct Avx2HalfLanes {
  using Floats = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kVectors = 2;  // at once, with up to six rows

  static Floats floats(float value) { return _mm256_set1_ps(value); }
  static Floats load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* to, Floats v) { _mm256_storeu_ps(to, v); }
  static Floats halves(const uint16_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static void prefetch(const uint16_t* at) {
    _mm_prefetch(reinterpret_cast<const char*>(at) + 2048, _MM_HINT_T0);
  }
};

}  // namespace

extern const HalfKernels kAvx2HalfKernels;
constexpr HalfKernels kAvx2HalfKernels = make_half_kernels<Avx2HalfLanes>("avx2");

}  // namespace foretoken::cpu
