#include "device/cpu/cpu_isa.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::cpu {
namespace {

TEST(CpuIsa, ANameBoundsIt) {
  const CpuIsa best = cpu_isa_up_to(nullptr);
  for (const CpuIsa isa :
       {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    EXPECT_EQ(cpu_isa_up_to(cpu_isa_name(isa)), std::min(isa, best)) << cpu_isa_name(isa);
  }
  EXPECT_EQ(cpu_isa_up_to("of another planet"), best);
}

TEST(CpuIsa, IsTheSameAtEveryCall) { EXPECT_EQ(cpu_isa(), cpu_isa()); }

}  // namespace
}  // namespace foretoken::cpu
