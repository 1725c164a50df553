#pragma once
#include <cstdint>

namespace foretoken::cpu {

// Vector instructions that kernels are written for, each with all those before it. kAvx512: F, BW,
// VL and DQ.
enum class CpuIsa : uint8_t { kBaseline, kAvx2, kAvx512, kAvx512Bf16, kAmx };

const char* cpu_isa_name(CpuIsa isa);

// The best that this machine has, up to the named one: baseline, avx2, avx512, avx512_bf16, amx.
// Any other name, or null, allows all.
CpuIsa cpu_isa_up_to(const char* name);

// cpu_isa_up_to the environment's FORETOKEN_CPU_ISA, the same at every call. Bits differ between
// instruction sets.
CpuIsa cpu_isa();

}  // namespace foretoken::cpu
