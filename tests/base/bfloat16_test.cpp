#include "base/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foretoken {
namespace {

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TEST(Bfloat16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = bf16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from_float(value)))) << bits;
    } else {
      EXPECT_EQ(bf16_from_float(value), half) << bits;
    }
  }
}

TEST(Bfloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(bf16_from_float(from_bits(0x3f808000)), 0x3f80);  // tie, even below
  EXPECT_EQ(bf16_from_float(from_bits(0x3f818000)), 0x3f82);  // tie, even above
  EXPECT_EQ(bf16_from_float(from_bits(0x3f807fff)), 0x3f80);
  EXPECT_EQ(bf16_from_float(from_bits(0x3f808001)), 0x3f81);
  EXPECT_EQ(bf16_from_float(from_bits(0xbf808001)), 0xbf81);
}

TEST(Bfloat16, KeepsInfinityAndRoundsTheLargestFloatToIt) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bf16_to_float(bf16_from_float(infinity)), infinity);
  EXPECT_EQ(bf16_to_float(bf16_from_float(-infinity)), -infinity);
  EXPECT_EQ(bf16_to_float(bf16_from_float(std::numeric_limits<float>::max())), infinity);
}

TEST(Bfloat16, KeepsNanWhosePayloadLiesInTheLostBits) {
  EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from_float(from_bits(0x7f800001)))));
  EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from_float(from_bits(0xffffffff)))));
}

}  // namespace
}  // namespace foretoken
