#include "kernels/gemm/cpu/bf16_kernels.h"

#include <vector>

#include "device/cpu/cpu_isa.h"
#include "kernels/cpu/kept_kernels.h"

namespace foretoken::cpu {

#if defined(__x86_64__)
extern const Bf16Kernels kAvx2Bf16Kernels;
extern const Bf16Kernels kAvx512Kernels;
extern const Bf16Kernels kAvx512Bf16Kernels;
extern const Bf16Kernels kAmxBf16Kernels;
#endif

namespace {

std::vector<Bf16Kernels> find_kernels() {
  std::vector<Bf16Kernels> found;
#if defined(__x86_64__)
  if (cpu_isa() >= CpuIsa::kAmx) found.push_back(kAmxBf16Kernels);
  if (cpu_isa() >= CpuIsa::kAvx512Bf16) found.push_back(kAvx512Bf16Kernels);
  if (cpu_isa() >= CpuIsa::kAvx512) found.push_back(kAvx512Kernels);
  if (cpu_isa() >= CpuIsa::kAvx2) found.push_back(kAvx2Bf16Kernels);
#endif
  return found;
}

}  // namespace

std::span<const Bf16Kernels> bf16_kernels() { return kept_kernels(find_kernels); }

}  // namespace foretoken::cpu
