#include "bench/serving_metrics.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

RequestRecord record_of(double start, double ttft, std::vector<double> itls, int64_t tokens) {
  RequestRecord record;
  record.success = true;
  record.start_time = start;
  record.ttft = ttft;
  record.itls = std::move(itls);
  record.latency = ttft;
  for (const double gap : record.itls) record.latency += gap;
  record.prompt_len = 10;
  record.output_tokens = tokens;
  return record;
}

RequestRecord failed_record() {
  RequestRecord record = record_of(0, 0.5, {9}, 99);
  record.success = false;
  record.error = "broke";
  return record;
}

TEST(ServingMetrics, SumsAndRates) {
  const std::vector<RequestRecord> records = {record_of(0, 0.1, {0.1, 0.1}, 3), failed_record(),
                                              record_of(0, 0.3, {0.2}, 5)};
  const ServingMetrics metrics = serving_metrics(records, 2, {99}, {});
  EXPECT_EQ(metrics.completed, 2);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.total_input, 20);
  EXPECT_EQ(metrics.total_output, 8);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 1);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 4);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 14);
  EXPECT_EQ(metrics.request_goodput, 0);
}

TEST(ServingMetrics, LatenciesOfSucceededRequestsInMs) {
  RequestRecord waited = record_of(2, 0.3, {0.2}, 5);
  waited.queue_time = 1;
  const std::vector<RequestRecord> records = {record_of(0, 0.1, {0.1, 0.1}, 3), failed_record(),
                                              waited, record_of(0, 0.2, {}, 1)};
  const ServingMetrics metrics = serving_metrics(records, 2, {100}, {});
  const auto mean = [&](const char* name) { return metrics.latencies.at(name).mean; };
  EXPECT_NEAR(mean("ttft"), 200, 1e-9);
  EXPECT_NEAR(mean("tpot"), (100 + 50) / 2.0, 1e-9) << "a single token has no time per token";
  EXPECT_NEAR(mean("itl"), 400 / 3.0, 1e-9) << "over gaps, not over requests";
  EXPECT_NEAR(mean("e2el"), 1000 / 3.0, 1e-9);
  EXPECT_NEAR(mean("client_queue_time"), 1000 / 3.0, 1e-9);
  EXPECT_NEAR(mean("e2el_including_client_queue"), 2000 / 3.0, 1e-9);
  EXPECT_NEAR(metrics.latencies.at("ttft").percentiles.at(0).second, 300, 1e-9);
}

TEST(ServingMetrics, PeaksAreThoseOfTheBestSecond) {
  // Seconds since the first start: a token at 0.5 and at 1.5; 3 at 2.2 and at 2.4; 1 at 2.3.
  const std::vector<RequestRecord> records = {
      record_of(10, 0.5, {1.0}, 2), record_of(12, 0.2, {0.2}, 6), record_of(12.1, 0.2, {}, 1)};
  const ServingMetrics metrics = serving_metrics(records, 3, {}, {});
  EXPECT_DOUBLE_EQ(metrics.max_output_tokens_per_s, 8) << "1.5 to 2.4";
  EXPECT_EQ(metrics.max_concurrent_requests, 2);
}

TEST(ServingMetrics, ThePeakIsNotBelowTheMean) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 9; ++i) records.push_back(record_of(0.17 * i, 0.1, {0.1, 0.1, 0.1}, 8));
  const double duration = 0.17 * 8 + 0.4;
  const ServingMetrics longer = serving_metrics(records, duration, {}, {});
  EXPECT_GE(longer.max_output_tokens_per_s, longer.output_throughput);
  records.resize(1);
  const ServingMetrics brief = serving_metrics(records, 0.4, {}, {});
  EXPECT_NEAR(brief.max_output_tokens_per_s, 20, 1e-9);
  EXPECT_NEAR(brief.output_throughput, 20, 1e-9);
}

TEST(ServingMetrics, GoodputNeedsEveryBound) {
  const std::vector<RequestRecord> records = {record_of(0, 0.1, {0.1, 0.1}, 3),
                                              record_of(0, 0.3, {0.02}, 2),
                                              record_of(0, 0.1, {}, 1), failed_record()};
  const auto goodput = [&](const std::vector<std::string>& bounds) {
    return serving_metrics(records, 1, {}, parse_goodput(bounds).value()).request_goodput;
  };
  EXPECT_EQ(goodput({"ttft:100"}), 2);
  EXPECT_EQ(goodput({"tpot:50"}), 2) << "one token counts as 0 ms per token";
  EXPECT_EQ(goodput({"ttft:100", "tpot:50"}), 1);
  EXPECT_EQ(goodput({"e2el:10000"}), 3);
}

TEST(ServingMetrics, WrongGoodputIsNamed) {
  EXPECT_FALSE(parse_goodput({}).value().wanted());
  for (const char* text : {"itl:5", "ttft", "ttft:", "ttft:x", "ttft:-1", ":5", "ttft:5ms"}) {
    const auto goodput = parse_goodput({"e2el:5", text});
    ASSERT_FALSE(goodput.ok()) << text;
    EXPECT_NE(goodput.status().message().find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(ServingMetrics, NothingCompleted) {
  const ServingMetrics metrics = serving_metrics({failed_record()}, 1, {99}, {});
  EXPECT_EQ(metrics.completed, 0);
  EXPECT_EQ(metrics.max_output_tokens_per_s, 0);
  EXPECT_EQ(metrics.latencies.at("ttft").mean, 0);
}

}  // namespace
}  // namespace foretoken::bench
