#include "kernels/gemm/cpu/half_kernels.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken::cpu {
namespace {

TEST(HalfKernels, EveryNumberOfRowsAndGroups) {
  ASSERT_FALSE(half_kernels().empty());
  EXPECT_EQ(std::string(half_kernels().back().name), "plain");
  EXPECT_EQ(has_half_products(), half_kernels().size() > 1);
  for (const HalfKernels& kernels : half_kernels()) {
    for (const auto& of_rows : kernels.products) {
      for (const HalfProduct product : of_rows) EXPECT_NE(product, nullptr) << kernels.name;
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
