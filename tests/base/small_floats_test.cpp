#include "base/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

TEST(SmallFloats, E4m3Values) {
  EXPECT_EQ(e4m3_to_float(0x00), 0.0f);
  EXPECT_EQ(e4m3_to_float(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(e4m3_to_float(0x07), std::ldexp(7.0f, -9));
  EXPECT_EQ(e4m3_to_float(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(e4m3_to_float(0x38), 1.0f);
  EXPECT_EQ(e4m3_to_float(0x3b), 1.375f);
  EXPECT_EQ(e4m3_to_float(0xb8), -1.0f);
  EXPECT_EQ(e4m3_to_float(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(e4m3_to_float(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3_to_float(0xff)));
  EXPECT_TRUE(std::signbit(e4m3_to_float(0x80)));
}

// Every code comes back, and between two neighbours the even one is nearest.
TEST(SmallFloats, E4m3FromFloat) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    if ((code & 0x7f) != 0x7f) {
      EXPECT_EQ(e4m3_from_float(e4m3_to_float(byte)), byte);
    }
  }
  for (int code = 0; code < 0x7e; ++code) {
    const auto low = static_cast<uint8_t>(code);
    const auto high = static_cast<uint8_t>(code + 1);
    const float middle = (e4m3_to_float(low) + e4m3_to_float(high)) / 2;
    const uint8_t even = code % 2 == 0 ? low : high;
    EXPECT_EQ(e4m3_from_float(middle), even) << code;
    EXPECT_EQ(e4m3_from_float(std::nextafter(middle, 0.0f)), low) << code;
    EXPECT_EQ(e4m3_from_float(std::nextafter(middle, 1e9f)), high) << code;
    EXPECT_EQ(e4m3_from_float(-middle), even | 0x80) << code;
  }
  EXPECT_EQ(e4m3_from_float(1e30f), 0x7e);
  EXPECT_EQ(e4m3_from_float(-INFINITY), 0xfe);
  EXPECT_EQ(e4m3_from_float(460), 0x7e);
  EXPECT_EQ(e4m3_from_float(1e-30f), 0);
  EXPECT_TRUE(std::isnan(e4m3_to_float(e4m3_from_float(NAN))));
}

TEST(SmallFloats, E2m1) {
  for (int code = 0; code < 7; ++code) {
    const auto low = static_cast<uint8_t>(code);
    const auto high = static_cast<uint8_t>(code + 1);
    const float middle = (e2m1_to_float(low) + e2m1_to_float(high)) / 2;
    EXPECT_EQ(e2m1_from_float(middle), code % 2 == 0 ? low : high) << code;
    EXPECT_EQ(e2m1_from_float(std::nextafter(middle, 0.0f)), low) << code;
    EXPECT_EQ(e2m1_from_float(std::nextafter(middle, 9.0f)), high) << code;
  }
  EXPECT_EQ(e2m1_from_float(-100), 15);
  EXPECT_EQ(e2m1_to_float(15), -6.0f);
  EXPECT_EQ(e2m1_from_float(-0.1f), 0);
}

TEST(SmallFloats, E8m0) {
  EXPECT_EQ(e8m0_to_float(0), 0x1p-127f);
  EXPECT_EQ(e8m0_to_float(1), 0x1p-126f);
  EXPECT_EQ(e8m0_to_float(127), 1.0f);
  EXPECT_EQ(e8m0_to_float(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

}  // namespace
}  // namespace foretoken
