#include "device/cpu/cpu_isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace foretoken::cpu {
namespace {

constexpr std::array<const char*, 5> kNames{"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

CpuIsa named_isa(const char* name) {
  const auto found = name == nullptr
                         ? kNames.end()
                         : std::find(kNames.begin(), kNames.end(), std::string_view(name));
  return found == kNames.end() ? CpuIsa::kAmx : static_cast<CpuIsa>(found - kNames.begin());
}

#if defined(__x86_64__)

// CPUID leaf 7: AMX-BF16 and AMX-TILE are bits 22 and 24 of edx.
bool has_amx_bf16() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
}

// The system saves tiles only for processes that ask.
bool ask_for_tiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kBaseline:
      return true;
    case CpuIsa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case CpuIsa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case CpuIsa::kAvx512Bf16:
      return __builtin_cpu_supports("avx512bf16");
    case CpuIsa::kAmx:
      return has_amx_bf16() && ask_for_tiles();
  }
  return false;
}

#else

bool has(CpuIsa isa) { return isa == CpuIsa::kBaseline; }

#endif

}  // namespace

const char* cpu_isa_name(CpuIsa isa) { return kNames[static_cast<size_t>(isa)]; }

CpuIsa cpu_isa_up_to(const char* name) {
  const CpuIsa most = named_isa(name);
  auto isa = CpuIsa::kBaseline;
  while (isa < most) {
    const auto next = static_cast<CpuIsa>(static_cast<int>(isa) + 1);
    if (!has(next)) break;
    isa = next;
  }
  return isa;
}

CpuIsa cpu_isa() {
  static const CpuIsa isa = cpu_isa_up_to(std::getenv("FORETOKEN_CPU_ISA"));
  return isa;
}

}  // namespace foretoken::cpu
