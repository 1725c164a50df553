#include "bench/latency_plot.h"

#include <gtest/gtest.h>

#include "bench/xml_check.h"

namespace foretoken::bench {
namespace {

TEST(LatencyPlot, ShowsThePercentilesOfSucceededRequests) {
  std::vector<RequestRecord> records;
  for (int i = 1; i <= 101; ++i) {
    RequestRecord record;
    record.success = i <= 100;
    record.ttft = i * 0.001;
    record.itls = {i * 0.002};
    records.push_back(record);
  }
  records.back().ttft = 99;
  const std::string svg = latency_svg(records, "m & n");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_NE(svg.find("p50 50.50, p90 90.10, p99 99.01, max 100.00 (100 values)"),
            std::string::npos);
  EXPECT_NE(svg.find("p50 101.00, p90 180.20"), std::string::npos);
  EXPECT_NE(svg.find("Time to first token, ms"), std::string::npos);
}

TEST(LatencyPlot, NothingIsStillAPicture) {
  const std::string svg = latency_svg({}, "t");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_NE(svg.find("no values"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::bench
