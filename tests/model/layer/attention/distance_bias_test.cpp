#include "model/layer/attention/distance_bias.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(DistanceBias, BucketsGrowWithTheDistance) {
  const auto bucket = [](int32_t behind) { return distance_bucket(behind, 32); };
  EXPECT_EQ(bucket(0), 0);
  EXPECT_EQ(bucket(-1), 1);
  EXPECT_EQ(bucket(-7), 7);
  EXPECT_EQ(bucket(-8), 8);
  EXPECT_EQ(bucket(-11), 8);
  EXPECT_EQ(bucket(-12), 9);
  EXPECT_EQ(bucket(-16), 10);
  EXPECT_EQ(bucket(-64), 14);
  EXPECT_EQ(bucket(-128), 15);
  EXPECT_EQ(bucket(-5000), 15);
  EXPECT_EQ(bucket(1), 17);
  EXPECT_EQ(bucket(16), 26);
  EXPECT_EQ(bucket(400), 31);
}

}  // namespace
}  // namespace foretoken
