#include "kernels/attention/code_scale.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace foretoken {
namespace {

CodeScale of_highest(float highest) {
  return scale_of_highest(std::bit_cast<uint32_t>(highest), 127.0f);
}

TEST(CodeScale, TheHighestElementHasTheHighestCode) {
  for (const float highest : {1e-29f, 0.3f, 1.0f, 1e30f}) {
    const CodeScale found = of_highest(highest);
    EXPECT_EQ(std::nearbyint(highest * found.inverse), 127.0f) << highest;
    EXPECT_NEAR(found.scale * 127 / highest, 1, 1e-6) << highest;
  }
}

TEST(CodeScale, WhatIsNoNumberHidesNothing) {
  for (const float none : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_TRUE(std::isnan(of_highest(none).scale));
    EXPECT_EQ(of_highest(none).inverse, 0);
  }
  EXPECT_EQ(of_highest(1e-31f).scale, 0);
  EXPECT_EQ(of_highest(0).inverse, 0);
}

}  // namespace
}  // namespace foretoken
