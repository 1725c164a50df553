#include "kernels/gemm/cpu/half_kernels.h"

#include <cmath>
#include <vector>

#include "base/half.h"
#include "device/cpu/cpu_isa.h"
#include "kernels/cpu/kept_kernels.h"
#include "kernels/gemm/cpu/half_product.h"

namespace foretoken::cpu {

#if defined(__x86_64__)
extern const HalfKernels kAvx512HalfKernels;
extern const HalfKernels kAvx2HalfKernels;
#endif

namespace {

// One column at a time, for processors without kernels of their own.
struct PlainHalfLanes {
  using Floats = float;
  static constexpr int kLanes = 1;
  static constexpr int kVectors = 1;

  static float floats(float value) { return value; }
  static float load(const float* at) { return *at; }
  static void store(float* to, float v) { *to = v; }
  static float halves(const uint16_t* at) { return half_to_float(*at); }
  static float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
  static void prefetch(const uint16_t*) {}
};

std::vector<HalfKernels> find_half_kernels() {
  std::vector<HalfKernels> found;
#if defined(__x86_64__)
  if (cpu_isa() >= CpuIsa::kAvx512) found.push_back(kAvx512HalfKernels);
  if (cpu_isa() >= CpuIsa::kAvx2 && __builtin_cpu_supports("f16c")) {
    found.push_back(kAvx2HalfKernels);
  }
#endif
  found.push_back(make_half_kernels<PlainHalfLanes>("plain"));
  return found;
}

}  // namespace

std::span<const HalfKernels> half_kernels() { return kept_kernels(find_half_kernels); }

bool has_half_products() { return half_kernels().size() > 1; }

}  // namespace foretoken::cpu
