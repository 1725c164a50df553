#include "serve/metrics/metric_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken {
namespace {

bool ascends(const std::vector<double>& bounds) {
  return std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) == bounds.end();
}

TEST(MetricBuckets, Ascend) {
  EXPECT_TRUE(ascends(first_token_buckets()));
  EXPECT_TRUE(ascends(token_latency_buckets()));
  EXPECT_TRUE(ascends(request_buckets()));
}

TEST(MetricBuckets, HaveVllmsBounds) {
  const std::vector<double> first = first_token_buckets();
  const std::vector<double> token = token_latency_buckets();
  const std::vector<double> request = request_buckets();
  for (const double bound : {0.001, 0.04, 0.25, 1.0, 80.0, 2560.0}) {
    EXPECT_TRUE(std::binary_search(first.begin(), first.end(), bound)) << bound;
  }
  for (const double bound : {0.01, 0.075, 0.4, 2.5, 80.0}) {
    EXPECT_TRUE(std::binary_search(token.begin(), token.end(), bound)) << bound;
  }
  for (const double bound : {0.3, 0.8, 15.0, 960.0, 7680.0}) {
    EXPECT_TRUE(std::binary_search(request.begin(), request.end(), bound)) << bound;
  }
}

TEST(MetricBuckets, CountsEndAtTheMost) {
  EXPECT_EQ(count_buckets(60), (std::vector<double>{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(count_buckets(100), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_TRUE(count_buckets(0).empty());
}

}  // namespace
}  // namespace foretoken
