#include "serve/metrics/process_metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

namespace foretoken {
namespace {

std::map<std::string, double> process_values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : process_metrics()) {
    const bool counts = family.type == prometheus::MetricType::Counter;
    EXPECT_EQ(family.metric.size(), 1u) << family.name;
    const prometheus::ClientMetric& metric = family.metric.front();
    values[family.name] = counts ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetrics, TellOfThisProcess) {
  const std::map<std::string, double> values = process_values();
  ASSERT_EQ(values.size(), 6u);
  const double resident = values.at("process_resident_memory_bytes");
  EXPECT_GT(resident, 1 << 20);
  EXPECT_GE(values.at("process_virtual_memory_bytes"), resident);
  EXPECT_GE(values.at("process_cpu_seconds_total"), 0);
  EXPECT_GT(values.at("process_open_fds"), 2);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LE(values.at("process_start_time_seconds"), now.count() + 2);
  EXPECT_GT(values.at("process_start_time_seconds"), now.count() - 86400 * 30);
}

}  // namespace
}  // namespace foretoken
