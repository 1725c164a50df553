#include "serve/metrics/older_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(OlderNames, AreCopiesUnderTheirOwnNames) {
  prometheus::ClientMetric half;
  half.gauge.value = 0.5;
  half.label.push_back({"engine", "1"});
  std::vector<prometheus::MetricFamily> families = {
      {"vllm:kv_cache_usage_perc", "x", prometheus::MetricType::Gauge, {half}},
      {"vllm:num_requests_running", "x", prometheus::MetricType::Gauge, {half}}};
  add_older_names(&families);
  ASSERT_EQ(families.size(), 3U);
  EXPECT_EQ(families[0].name, "vllm:kv_cache_usage_perc");
  EXPECT_EQ(families[2].name, "vllm:gpu_cache_usage_perc");
  EXPECT_EQ(families[2].metric[0].gauge.value, 0.5);
  EXPECT_EQ(families[2].metric[0].label[0].value, "1");
}

}  // namespace
}  // namespace foretoken
