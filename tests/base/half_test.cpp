#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

TEST(Half, ToFloat) {
  EXPECT_EQ(half_to_float(0x0000), 0.0f);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc500), -5.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x83ff), -1023 * 0x1p-24f);
  EXPECT_TRUE(std::isinf(half_to_float(0x7c00)));
  EXPECT_TRUE(std::isnan(half_to_float(0x7e01)));
}

// Every half comes back, and between two neighbours the even one is nearest.
TEST(Half, FromFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(half_from_float(value))));
      continue;
    }
    ASSERT_EQ(half_from_float(value), half);
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = half_to_float(static_cast<uint16_t>(half + 1));
    const float middle = (value + next) / 2;
    ASSERT_EQ(half_from_float(middle), half + (half & 1)) << bits;
    ASSERT_EQ(half_from_float(std::nextafter(middle, value)), half) << bits;
    ASSERT_EQ(half_from_float(std::nextafter(middle, next)), half + 1) << bits;
  }
  EXPECT_EQ(half_from_float(65519.0F), 0x7bff);
  EXPECT_EQ(half_from_float(65520.0F), 0x7c00);
  EXPECT_EQ(half_from_float(-1e30F), 0xfc00);
}

}  // namespace
}  // namespace foretoken
