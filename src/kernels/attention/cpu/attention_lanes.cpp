#include "kernels/attention/cpu/attention_lanes.h"

#include <vector>

#include "device/cpu/cpu_isa.h"
#include "kernels/cpu/kept_kernels.h"

namespace foretoken::cpu {

#if defined(__x86_64__)
extern const AttentionLanes kAvx512AttentionLanes;
extern const AttentionLanes kAvx2AttentionLanes;
#endif

namespace {

std::vector<AttentionLanes> find_lanes() {
  std::vector<AttentionLanes> found;
#if defined(__x86_64__)
  if (cpu_isa() >= CpuIsa::kAvx512) found.push_back(kAvx512AttentionLanes);
  if (cpu_isa() >= CpuIsa::kAvx2) found.push_back(kAvx2AttentionLanes);
#endif
  return found;
}

}  // namespace

std::span<const AttentionLanes> attention_lanes() { return kept_kernels(find_lanes); }

}  // namespace foretoken::cpu
