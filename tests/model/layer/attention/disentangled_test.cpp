#include "model/layer/attention/disentangled.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// The buckets of DeBERTa V3, as transformers makes them.
TEST(Disentangled, FarPlacesHaveARowInCommon) {
  const DistanceConfig distances{.side = 256, .buckets = 256, .reach = 512};
  const auto place = [&](int32_t distance) { return place_of_distance(distance, distances); };
  EXPECT_EQ(place(0), 256);
  EXPECT_EQ(place(1), 257);
  EXPECT_EQ(place(-1), 255);
  EXPECT_EQ(place(128), 384);
  EXPECT_EQ(place(-128), 128);
  EXPECT_EQ(place(129), 385);
  EXPECT_EQ(place(200), 425);
  EXPECT_EQ(place(-200), 87);
  EXPECT_EQ(place(511), 511);
  EXPECT_EQ(place(-511), 1);
  EXPECT_EQ(place(-600), 0);
  EXPECT_EQ(place(5000), 511);
}

TEST(Disentangled, PlacesWithoutBucketsAreCutAtTheEnds) {
  const DistanceConfig distances{.side = 12, .reach = 12};
  EXPECT_EQ(place_of_distance(-20, distances), 0);
  EXPECT_EQ(place_of_distance(-12, distances), 0);
  EXPECT_EQ(place_of_distance(-3, distances), 9);
  EXPECT_EQ(place_of_distance(0, distances), 12);
  EXPECT_EQ(place_of_distance(11, distances), 23);
  EXPECT_EQ(place_of_distance(12, distances), 23);
}

}  // namespace
}  // namespace foretoken
