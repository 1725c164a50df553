#include "serve/metrics/span_metrics.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpanMetrics, CountsByOutcome) {
  const prometheus::MetricFamily family = span_family({.num_sent = 3, .num_dropped = 1});
  EXPECT_EQ(family.name, "foretoken:trace_spans_total");
  ASSERT_EQ(family.metric.size(), 2u);
  EXPECT_EQ(family.metric[0].label[0].value, "sent");
  EXPECT_EQ(family.metric[0].counter.value, 3);
  EXPECT_EQ(family.metric[1].label[0].value, "dropped");
  EXPECT_EQ(family.metric[1].counter.value, 1);
}

}  // namespace
}  // namespace foretoken
