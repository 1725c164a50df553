#include "kernels/random_weight.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

TEST(RandomWeight, IsUniformAndDependsOnSeedAndIndexAlone) {
  constexpr int kCount = 20000;
  const float scale = 0x1p-31f;  // [-1, 1)
  double sum = 0, square = 0;
  int quarters[4] = {};
  for (uint64_t i = 0; i < kCount; ++i) {
    const float value = random_weight(7, i, scale);
    ASSERT_EQ(value, random_weight(7, i, scale));
    ASSERT_TRUE(value >= -1 && value <= 1);
    sum += value;
    square += double(value) * value;
    ++quarters[std::min(3, static_cast<int>((value + 1) * 2))];
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(std::sqrt(square / kCount), 1 / std::sqrt(3.0), 0.01);
  for (const int quarter : quarters) EXPECT_NEAR(quarter, kCount / 4, kCount / 40);
  EXPECT_NE(random_weight(7, 0, scale), random_weight(8, 0, scale));
}

}  // namespace
}  // namespace foretoken
