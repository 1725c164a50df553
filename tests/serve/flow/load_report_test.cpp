#include "serve/flow/load_report.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LoadReport, InTheFormatThatIsAskedFor) {
  EngineStats stats;
  stats.num_total_blocks = 8;
  stats.num_free_blocks = 6;
  stats.num_waiting_requests = 3;
  const http::Headers text = load_report("text", stats);
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0].first, "endpoint-load-metrics");
  EXPECT_EQ(text[0].second,
            "TEXT named_metrics.kv_cache_usage_perc=0.25, named_metrics.num_requests_waiting=3.0");
  EXPECT_EQ(load_report("JSON", stats)[0].second,
            R"(JSON {"named_metrics":{"kv_cache_usage_perc":0.25,"num_requests_waiting":3.0}})");
  EXPECT_TRUE(load_report("BIN", stats).empty());
  stats.num_total_blocks = 0;
  EXPECT_NE(load_report("text", stats)[0].second.find("usage_perc=0.0"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
