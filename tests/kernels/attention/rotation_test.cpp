#include "kernels/attention/cpu/rotation.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::cpu {
namespace {

TEST(Rotation, TurnsPairsHalfOfTheTurningPartApart) {
  const std::vector<float> inv_freq = {1.0f, 0.5f};
  Rotation rotation;
  make_rotation({inv_freq.data(), 2, 2.0f, -1, {}}, 4, &rotation);
  EXPECT_EQ(rotation.query_scale, 1);
  const std::vector<float> x = {1, 2, 3, 4, 5};
  std::vector<float> out(5);
  rotate(x.data(), rotation, 2, 5, out.data());
  for (int i = 0; i < 2; ++i) {
    const float angle = 3 * inv_freq[i];
    EXPECT_FLOAT_EQ(out[i], 2 * (x[i] * std::cos(angle) - x[i + 2] * std::sin(angle)));
    EXPECT_FLOAT_EQ(out[i + 2], 2 * (x[i + 2] * std::cos(angle) + x[i] * std::sin(angle)));
  }
  EXPECT_EQ(out[4], 5) << "behind the turning part";
}

TEST(Rotation, PositionsBeforeTheFirstAreTheFirst) {
  const float inv_freq = 1.0f;
  Rotation rotation;
  make_rotation({&inv_freq, 1, 1.0f, -5, {}}, 2, &rotation);
  EXPECT_EQ(rotation.cos[0], 1);
  EXPECT_EQ(rotation.sin[0], 0);
}

TEST(Rotation, QueriesGrowByWholePeriods) {
  const QueryScale scale{0.5f, 8.0f, 1.0f};
  EXPECT_EQ(query_scale_at(scale, 6), 1);
  EXPECT_FLOAT_EQ(query_scale_at(scale, 7), 1 + 0.5f * std::log(2.0f));
  EXPECT_EQ(query_scale_at(scale, 14), query_scale_at(scale, 7));
  EXPECT_EQ(query_scale_at({}, 1000), 1);
}

}  // namespace
}  // namespace foretoken::cpu
