#include "serve/metrics/metric_order.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

prometheus::ClientMetric metric(const std::string& engine, const std::string& position) {
  prometheus::ClientMetric made;
  made.label = {{"engine", engine}, {"model_name", "m"}, {"position", position}};
  return made;
}

TEST(MetricOrder, NumbersByTheirValueAndEnginesFirst) {
  prometheus::MetricFamily family;
  family.metric = {metric("1", "0"), metric("0", "10"), metric("0", "2"), metric("0", "0"),
                   metric("0", "all")};
  std::vector<prometheus::MetricFamily> all = {family, {}};
  order_metrics(&all);
  std::string order;
  for (const auto& one : all[0].metric) {
    order += one.label[0].value + ":" + one.label[2].value + " ";
  }
  EXPECT_EQ(order, "0:0 0:2 0:10 0:all 1:0 ");
}

}  // namespace
}  // namespace foretoken
