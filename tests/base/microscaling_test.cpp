#include "base/microscaling.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

// Between two neighbours the even one is nearest.
TEST(Microscaling, E2m1) {
  for (int code = 0; code < 7; ++code) {
    const auto low = static_cast<uint8_t>(code);
    const auto high = static_cast<uint8_t>(code + 1);
    const float middle = (e2m1_value(low) + e2m1_value(high)) / 2;
    EXPECT_EQ(e2m1_code(middle), code % 2 == 0 ? low : high) << code;
    EXPECT_EQ(e2m1_code(std::nextafter(middle, 0.0f)), low) << code;
    EXPECT_EQ(e2m1_code(std::nextafter(middle, 9.0f)), high) << code;
  }
  EXPECT_EQ(e2m1_code(-100), 15);
  EXPECT_EQ(e2m1_value(15), -6.0f);
  EXPECT_EQ(e2m1_code(-0.1f), 0);
  EXPECT_EQ(e2m1_code(NAN), 0);
}

TEST(Microscaling, E8m0) {
  EXPECT_EQ(e8m0_value(0), 0x1p-127f);
  EXPECT_EQ(e8m0_value(1), 0x1p-126f);
  EXPECT_EQ(e8m0_value(127), 1.0f);
  EXPECT_EQ(e8m0_value(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(e8m0_value(255)));
}

}  // namespace
}  // namespace foretoken
