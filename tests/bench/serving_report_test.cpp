#include "bench/serving_report.h"

#include <gtest/gtest.h>

#include "bench/report_cases.h"

namespace foretoken::bench {
namespace {

using json = nlohmann::ordered_json;

TEST(ServingReport, JsonHasTheNamesOfVllm) {
  const json result = json_of(settings_of(), load_of());
  for (const char* name : {"date",
                           "endpoint_type",
                           "backend",
                           "label",
                           "model_id",
                           "tokenizer_id",
                           "num_prompts",
                           "request_rate",
                           "burstiness",
                           "max_concurrency",
                           "duration",
                           "completed",
                           "failed",
                           "total_input_tokens",
                           "total_output_tokens",
                           "request_throughput",
                           "request_goodput",
                           "output_throughput",
                           "total_token_throughput",
                           "input_lens",
                           "output_lens",
                           "ttfts",
                           "itls",
                           "latencies",
                           "start_times",
                           "queue_times",
                           "generated_texts",
                           "errors",
                           "max_output_tokens_per_s",
                           "max_concurrent_requests",
                           "rtfx",
                           "mean_ttft_ms",
                           "median_ttft_ms",
                           "std_ttft_ms",
                           "p50_ttft_ms",
                           "p99_ttft_ms",
                           "p99.9_ttft_ms",
                           "mean_tpot_ms",
                           "mean_itl_ms",
                           "p99_itl_ms",
                           "mean_e2el_ms"}) {
    EXPECT_TRUE(result.contains(name)) << name;
  }
  EXPECT_EQ(result["completed"], 4);
  EXPECT_EQ(result["failed"], 1);
  EXPECT_EQ(result["request_rate"], "inf");
  EXPECT_EQ(result["max_concurrency"], nullptr);
  EXPECT_EQ(result["request_goodput"], nullptr);
  EXPECT_EQ(result["label"], nullptr);
  EXPECT_EQ(result["output_lens"], json({5, 5, 5, 5, 0}));
  EXPECT_EQ(result["errors"][4], "HTTP 500");
  EXPECT_EQ(result["itls"][0], json({0.1, 0.2}));
  EXPECT_DOUBLE_EQ(result["mean_ttft_ms"], 100);
  EXPECT_DOUBLE_EQ(result["mean_tpot_ms"], 75);
  EXPECT_FALSE(result.contains("mean_client_queue_time_ms")) << "needs --max-concurrency";
  EXPECT_FALSE(result.contains("spec_decode_acceptance_rate"));
  EXPECT_FALSE(result.contains("num_unfinished"));
}

TEST(ServingReport, JsonOfWhatWasAsked) {
  ReportSettings settings = settings_of();
  settings.label = "run";
  settings.tokenizer_id = "tok";
  settings.metadata = {{"version", "1.0"}, {"tp", "2"}};
  settings.arrivals.request_rate = 4;
  settings.max_concurrency = 8;
  settings.with_goodput = true;
  settings.interrupted = true;
  LoadResult load = load_of();
  load.num_unfinished = 3;
  load.records[0].server_ttft = 0.25;
  load.rate_changes = {{1, "now"}};
  load.drafts = DraftSummary{20, 40, 25, 62.5, 2.25, {0.85, 0.4}};
  const json result = json_of(settings, load);
  EXPECT_EQ(result["label"], "run");
  EXPECT_EQ(result["tokenizer_id"], "tok");
  EXPECT_EQ(result["version"], "1.0");
  EXPECT_EQ(result["request_rate"], 4.0);
  EXPECT_EQ(result["max_concurrency"], 8);
  EXPECT_TRUE(result["request_goodput"].is_number());
  EXPECT_TRUE(result.contains("mean_client_queue_time_ms"));
  EXPECT_TRUE(result.contains("p99_e2el_including_client_queue_ms"));
  EXPECT_EQ(result["server_ttfts"], json({0.25, nullptr, nullptr, nullptr, nullptr}));
  EXPECT_EQ(result["rps_change_events"], json::parse(R"([{"rps":1,"timestamp":"now"}])"));
  EXPECT_EQ(result["spec_decode_acceptance_rate"], 62.5);
  EXPECT_EQ(result["spec_decode_acceptance_length"], 2.25);
  EXPECT_EQ(result["spec_decode_num_drafts"], 20);
  EXPECT_EQ(result["spec_decode_draft_tokens"], 40);
  EXPECT_EQ(result["spec_decode_accepted_tokens"], 25);
  EXPECT_EQ(result["spec_decode_per_position_acceptance_rates"], json({0.85, 0.4}));
  EXPECT_EQ(result["num_unfinished"], 3);
}

TEST(ServingReport, DetailsCanBeLeftOut) {
  json result = json_of(settings_of(), load_of());
  drop_details(&result);
  for (const char* name :
       {"input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors"}) {
    EXPECT_FALSE(result.contains(name)) << name;
  }
  EXPECT_TRUE(result.contains("latencies")) << "vLLM keeps it";
  EXPECT_TRUE(result.contains("mean_ttft_ms"));
}

TEST(ServingReport, Percentiles) {
  EXPECT_EQ(percent_text(99), "99");
  EXPECT_EQ(percent_text(99.9), "99.9");
}

}  // namespace
}  // namespace foretoken::bench
