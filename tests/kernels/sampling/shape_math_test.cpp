#include "kernels/sampling/shape_math.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretoken::shape_math {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(ShapeMath, RepetitionPushesAwayFromTheTop) {
  EXPECT_EQ(repeated(3.0f, 1.5f), 2.0f);
  EXPECT_EQ(repeated(-3.0f, 1.5f), -4.5f);
  EXPECT_EQ(repeated(0.0f, 1.5f), 0.0f);
  EXPECT_EQ(repeated(-kInf, 1.5f), -kInf);
}

TEST(ShapeMath, LoweringIsASequenceOfSubtractions) {
  float want = 5.3f;
  for (int i = 0; i < 1000; ++i) want -= 0.1f;
  EXPECT_EQ(lowered(5.3f, 0.1f, 1000), want);
  EXPECT_NE(want, 5.3f - 1000 * 0.1f) << "else the order would not show";
  EXPECT_EQ(lowered(5.3f, 0.1f, 0), 5.3f);
  EXPECT_EQ(lowered(-kInf, 0.1f, 7), -kInf);
  EXPECT_EQ(lowered(2e9f, 0.1f, std::numeric_limits<int>::max()), 2e9f) << "ends early";
}

}  // namespace
}  // namespace foretoken::shape_math
