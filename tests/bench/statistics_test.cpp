#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

TEST(Statistics, PercentilesLieBetweenNeighbours) {
  const std::vector<double> values = {10, 20, 30, 40};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 10);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 25);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 37);
  EXPECT_DOUBLE_EQ(percentile(values, 99), 39.7);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 40);
  EXPECT_DOUBLE_EQ(percentile({5}, 99), 5);
  EXPECT_EQ(percentile({}, 50), 0);
}

TEST(Statistics, DescribesAnyOrderAndScale) {
  const Distribution result = describe({0.4, 0.1, 0.3, 0.2}, {25, 99.9}, 1000);
  EXPECT_DOUBLE_EQ(result.mean, 250);
  EXPECT_DOUBLE_EQ(result.median, 250);
  EXPECT_NEAR(result.std, 111.803398875, 1e-9);
  ASSERT_EQ(result.percentiles.size(), 2u);
  EXPECT_EQ(result.percentiles[0].first, 25);
  EXPECT_DOUBLE_EQ(result.percentiles[0].second, 175);
  EXPECT_NEAR(result.percentiles[1].second, 399.7, 1e-9);
}

TEST(Statistics, NothingIsZero) {
  const Distribution result = describe({}, {99});
  EXPECT_EQ(result.mean, 0);
  EXPECT_EQ(result.std, 0);
  EXPECT_EQ(result.median, 0);
  EXPECT_EQ(result.percentiles.at(0).second, 0);
}

}  // namespace
}  // namespace foretoken::bench
