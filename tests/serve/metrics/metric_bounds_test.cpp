#include "serve/metrics/metric_bounds.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(MetricBounds, WholeNumbersGetAPoint) {
  EXPECT_EQ(with_float_bounds("a_bucket{le=\"1\"} 1\na_bucket{x=\"2\",le=\"40\"} 1\n"),
            "a_bucket{le=\"1.0\"} 1\na_bucket{x=\"2\",le=\"40.0\"} 1\n");
  for (const char* same :
       {"", "a 1\n", "a{le=\"0.5\"} 1\n", "a{le=\"+Inf\"} 1\n", "a{le=\"1e+06\"} 1\n",
        "a{le=\"\"} 1\n", "a{scale=\"1\"} 2\n", "a{name=\"x,le=\\\"1\\\"\"} 1\n", "a{le=\"12"}) {
    EXPECT_EQ(with_float_bounds(same), same);
  }
}

}  // namespace
}  // namespace foretoken
