#include "bench/serving_table.h"

#include <gtest/gtest.h>

#include "bench/report_cases.h"

namespace foretoken::bench {
namespace {

using json = nlohmann::ordered_json;

bool has_line(const std::string& table, const std::string& start) {
  return table.find("\n" + start) != std::string::npos;
}

TEST(ServingTable, TableLooksLikeVllms) {
  ReportSettings settings = settings_of();
  settings.percentile_metrics = {"ttft"};
  settings.max_concurrency = 8;
  LoadResult load = load_of();
  load.drafts = DraftSummary{20, 40, 25, 62.5, 2.25, {0.85, 0.4}};
  const std::string table = result_table(settings, load, metrics_of(load));
  const std::string expected =
      "============ Serving Benchmark Result ============\n"
      "Successful requests:                     4         \n"
      "Failed requests:                         1         \n"
      "Maximum request concurrency:             8         \n"
      "Benchmark duration (s):                  2.00      \n"
      "Total input tokens:                      40        \n"
      "Total generated tokens:                  20        \n"
      "Request throughput (req/s):              2.00      \n"
      "Output token throughput (tok/s):         10.00     \n"
      "Peak output token throughput (tok/s):    28.57     \n"
      "Peak concurrent requests:                4.00      \n"
      "Total token throughput (tok/s):          30.00     \n"
      "---------------Time to First Token----------------\n"
      "Mean TTFT (ms):                          100.00    \n"
      "Median TTFT (ms):                        100.00    \n"
      "P50 TTFT (ms):                           100.00    \n"
      "P99 TTFT (ms):                           100.00    \n"
      "P99.9 TTFT (ms):                         100.00    \n"
      "---------------Speculative Decoding---------------\n"
      "Acceptance rate (%):                     62.50     \n"
      "Acceptance length:                       2.25      \n"
      "Drafts:                                  20        \n"
      "Draft tokens:                            40        \n"
      "Accepted tokens:                         25        \n"
      "Per-position acceptance (%):\n"
      "  Position 0:                            85.00     \n"
      "  Position 1:                            40.00     \n"
      "==================================================\n";
  EXPECT_EQ(table, expected);
}

TEST(ServingTable, EmbeddingsHaveNoTokenTimes) {
  ReportSettings settings = settings_of();
  settings.pooling = true;
  const LoadResult load = load_of();
  const std::string table = result_table(settings, load, metrics_of(load));
  EXPECT_FALSE(has_line(table, "Mean TTFT"));
  EXPECT_FALSE(has_line(table, "Total generated tokens"));
  EXPECT_TRUE(has_line(table, "Mean E2EL (ms):"));
  EXPECT_TRUE(has_line(table, "Input throughput (inputs/s):             2.00"));
  EXPECT_FALSE(json_of(settings, load).contains("mean_itl_ms"));
  EXPECT_EQ(json_of(settings, load)["total_input_sequences"], 4);
}

TEST(ServingTable, ProbesHaveTheirBlock) {
  LoadResult load = load_of();
  load.probes = load.records;
  const json result = json_of(settings_of(), load);
  EXPECT_EQ(result["probe_completed"], 4);
  EXPECT_EQ(result["probe_failed"], 1);
  EXPECT_DOUBLE_EQ(result["probe_max_e2el_ms"], 400);
  const std::string table = result_table(settings_of(), load, metrics_of(load));
  EXPECT_TRUE(has_line(table, "------------------Probe Requests------------------\n"));
}

TEST(ServingTable, FailuresAreGrouped) {
  EXPECT_EQ(failure_lines(load_of(0).records), "");
  LoadResult load = load_of(3);
  load.records[5].error = "broke";
  EXPECT_EQ(failure_lines(load.records), "3 of 7 requests failed:\n  2 x HTTP 500\n  1 x broke\n");
  LoadResult many = load_of(14);
  for (size_t i = 0; i < many.records.size(); ++i) many.records[i].error += std::to_string(i);
  EXPECT_NE(failure_lines(many.records).find("  and 4 other errors\n"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::bench
