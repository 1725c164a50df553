#include "base/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace foretoken {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double value_by_definition(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
  return code < 128 ? magnitude : -magnitude;
}

TEST(Float8, ValuesAreThoseOfTheDefinition) {
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3_value(static_cast<uint8_t>(code));
    EXPECT_EQ(std::signbit(value), code >= 128) << code;
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, value_by_definition(code)) << code;
    }
  }
}

TEST(Float8, ValuesKeepTheirCodes) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(e4m3_code(e4m3_value(static_cast<uint8_t>(code))), code);
  }
}

// Between two neighbours the nearer one, in the middle the one whose code is even.
TEST(Float8, RoundsToTheNearest) {
  for (int low = 0; low < 0x7e; ++low) {
    const auto below = static_cast<float>(value_by_definition(low));
    const auto above = static_cast<float>(value_by_definition(low + 1));
    const float middle = (below + above) / 2;
    for (const int sign : {0, 0x80}) {
      const float turn = sign == 0 ? 1.0f : -1.0f;
      const int even = low % 2 == 0 ? low : low + 1;
      EXPECT_EQ(e4m3_code(turn * middle), even + sign) << low;
      EXPECT_EQ(e4m3_code(turn * std::nextafter(middle, 0.0f)), low + sign) << low;
      EXPECT_EQ(e4m3_code(turn * std::nextafter(middle, kInfinity)), low + 1 + sign) << low;
    }
  }
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> exponents(-12, 9);
  for (int i = 0; i < 2000; ++i) {
    const float x = std::min(std::exp2(exponents(engine)), kMaxE4m3);
    const float error = std::abs(e4m3_value(e4m3_code(x)) - x);
    for (int code = 0; code < 0x7f; ++code) {
      ASSERT_LE(error, std::abs(value_by_definition(code) - x)) << x;
    }
  }
}

TEST(Float8, SaturatesAndKeepsNan) {
  for (const float x : {448.0f, 464.0f, 500.0f, 3e38f, kInfinity}) {
    EXPECT_EQ(e4m3_code(x), 0x7e) << x;
    EXPECT_EQ(e4m3_code(-x), 0xfe) << x;
  }
  EXPECT_EQ(e4m3_code(std::numeric_limits<float>::quiet_NaN()) & 0x7f, 0x7f);
  EXPECT_EQ(e4m3_code(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(e4m3_code(-0.0f), 0x80);
}

}  // namespace
}  // namespace foretoken
