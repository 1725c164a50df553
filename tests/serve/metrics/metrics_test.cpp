#include "serve/metrics/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <thread>

namespace foretoken {
namespace {

EngineInfo some_engine() {
  EngineInfo info;
  info.max_model_len = 2048;
  info.block_size = 16;
  info.num_blocks = 100;
  DrafterInfo drafter;
  drafter.name = "ngram";
  drafter.num_speculative_tokens = 3;
  info.drafters = {drafter};
  return info;
}

EngineStats some_stats() {
  EngineStats stats;
  stats.num_steps = 7;
  stats.requests.num_prompt_tokens = 100;
  stats.requests.num_cached_tokens = 40;
  stats.requests.num_output_tokens = 55;
  stats.requests.num_drafts = 10;
  stats.requests.num_draft_tokens = 30;
  stats.requests.num_accepted_tokens = 12;
  stats.requests.num_accepted_tokens_per_pos = {8, 3, 1};
  stats.num_running_requests = 2;
  stats.num_waiting_requests = 3;
  stats.num_total_blocks = 100;
  stats.num_free_blocks = 25;
  stats.step_tokens.num_steps[0] = 4;
  stats.step_tokens.num_steps[3] = 3;
  stats.step_tokens.sum = 94;
  return stats;
}

// The value of the series whose line begins with `name` and holds every one of `labels`, or -1.
double value_of(const std::string& page, const std::string& name,
                const std::vector<std::string>& labels = {}) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "{", 0) != 0) continue;
    bool matches = true;
    for (const std::string& label : labels) matches &= line.find(label) != std::string::npos;
    if (matches) return std::stod(line.substr(line.rfind(' ') + 1));
  }
  return -1;
}

Request some_request(const std::string& id = "one") {
  Request request;
  request.request_id = id;
  return request;
}

RequestOutput output_of(int num_tokens, bool finished) {
  RequestOutput output;
  output.request_id = "one";
  output.token_ids.assign(static_cast<size_t>(num_tokens), 5);
  output.finished = finished;
  output.request_finished = finished;
  output.finish_reason = finished ? FinishReason::kStop : FinishReason::kNone;
  output.stats.num_prompt_tokens = 20;
  output.stats.num_cached_tokens = 16;
  output.stats.num_output_tokens = 5;
  return output;
}

TEST(ServeMetrics, TellsTheCountsOfEachOfSeveralEngines) {
  EngineInfo info = some_engine();
  info.num_engines = 2;
  ServeMetrics metrics("tiny", info);
  EngineStats stats = some_stats();
  stats.engines = {some_stats(), some_stats()};
  stats.engines[1].num_running_requests = 9;
  stats.engines[1].requests.num_drafts = 21;
  stats.engines[1].offload = {
      .num_queried_tokens = 50, .num_hit_tokens = 32, .bytes_out = 900, .bytes_in = 600};
  const std::string page = metrics.text(stats);
  EXPECT_EQ(value_of(page, "vllm:num_requests_running", {"engine=\"0\""}), 2);
  EXPECT_EQ(value_of(page, "vllm:num_requests_running", {"engine=\"1\""}), 9);
  EXPECT_EQ(value_of(page, "vllm:spec_decode_num_drafts_total", {"engine=\"1\""}), 21);
  EXPECT_EQ(value_of(page, "vllm:iteration_tokens_total_count", {"engine=\"1\""}), 7);
  EXPECT_EQ(value_of(page, "vllm:external_prefix_cache_queries_total", {"engine=\"1\""}), 50);
  EXPECT_EQ(value_of(page, "vllm:external_prefix_cache_hits_total", {"engine=\"1\""}), 32);
  EXPECT_EQ(value_of(page, "foretoken:kv_offload_bytes_total", {"engine=\"1\"", "\"in\""}), 600);
  EXPECT_EQ(value_of(page, "vllm:request_success_total", {"engine=\"all\""}), 0);
  // A family is announced once.
  const std::string type = "# TYPE vllm:iteration_tokens_total";
  EXPECT_EQ(page.find(type), page.rfind(type));
}

// A server of some engines among those of several servers.
TEST(ServeMetrics, EnginesHaveTheirNumbersAmongAll) {
  EngineInfo info = some_engine();
  info.first_engine = 2;
  ServeMetrics one("tiny", info);
  const std::string alone = one.text(some_stats());
  EXPECT_EQ(value_of(alone, "vllm:num_requests_running", {"engine=\"2\""}), 2);
  EXPECT_EQ(value_of(alone, "vllm:request_success_total", {"engine=\"2\""}), 0);
  info.num_engines = 2;
  ServeMetrics both("tiny", info);
  EngineStats stats = some_stats();
  stats.engines = {some_stats(), some_stats()};
  stats.engines[1].num_running_requests = 9;
  const std::string page = both.text(stats);
  EXPECT_EQ(value_of(page, "vllm:num_requests_running", {"engine=\"2\""}), 2);
  EXPECT_EQ(value_of(page, "vllm:num_requests_running", {"engine=\"3\""}), 9);
}

TEST(ServeMetrics, TellsTheAdaptersOfRequests) {
  const auto named = [](const std::string& id, const std::string& adapter) {
    Request request = some_request(id);
    request.adapter = adapter;
    return request;
  };
  ServeMetrics metrics("tiny", some_engine(), 4);
  metrics.add_request(named("one", "sql"));
  metrics.add_request(named("two", "poems"));
  metrics.add_request(some_request("three"));
  metrics.add_output(output_of(1, false));
  const std::string running = "running_lora_adapters=";
  const std::string waiting = "waiting_lora_adapters=";
  const std::string name = "vllm:lora_requests_info";
  EngineStats stats = some_stats();
  std::string page = metrics.text(stats);
  EXPECT_GT(value_of(page, name, {"max_lora=\"4\"", running + "\"sql\"", waiting + "\"poems\""}),
            1e9);
  stats.num_waiting_requests = 0;
  page = metrics.text(stats);
  EXPECT_GT(value_of(page, name, {running + "\"poems,sql\"", waiting + "\"\""}), 1e9);
  metrics.add_output(output_of(1, true));
  metrics.drop_request("two");
  page = metrics.text(stats);
  EXPECT_GT(value_of(page, name, {running + "\"\"", waiting + "\"\""}), 1e9);
  EXPECT_EQ(value_of(ServeMetrics("tiny", some_engine()).text(stats), name), -1);
}

TEST(ServeMetrics, TellsWhichDrafterDrafted) {
  EngineInfo info = some_engine();
  info.drafters.assign(2, {});
  info.drafters[0].name = "ngram";
  info.drafters[1].name = "eagle3";
  info.drafters[1].num_speculative_tokens = 4;
  ServeMetrics metrics("tiny", info);
  EngineStats stats = some_stats();
  stats.requests.num_draft_tokens_by_drafter = {30, 12};
  stats.requests.num_accepted_tokens_by_drafter = {20, 5};
  const std::string page = metrics.text(stats);
  const std::string drafted = "foretoken:spec_decode_num_draft_tokens_by_drafter_total";
  const std::string accepted = "foretoken:spec_decode_num_accepted_tokens_by_drafter_total";
  EXPECT_EQ(value_of(page, drafted, {"drafter=\"ngram\""}), 30);
  EXPECT_EQ(value_of(page, drafted, {"drafter=\"eagle3\""}), 12);
  EXPECT_EQ(value_of(page, accepted, {"drafter=\"eagle3\""}), 5);
}

TEST(ServeMetrics, TellsTheEnginesCounts) {
  ServeMetrics metrics("tiny", some_engine());
  const std::string page = metrics.text(some_stats());
  EXPECT_EQ(value_of(page, "vllm:num_requests_running"), 2);
  EXPECT_EQ(value_of(page, "vllm:num_requests_waiting"), 3);
  EXPECT_EQ(value_of(page, "vllm:kv_cache_usage_perc"), 0.75);
  EXPECT_EQ(value_of(page, "vllm:generation_tokens_total"), 55);
  EXPECT_EQ(value_of(page, "vllm:prefix_cache_hits_total"), 40);
  EXPECT_EQ(value_of(page, "vllm:prompt_tokens_by_source_total", {"local_compute"}), 60);
  EXPECT_EQ(value_of(page, "vllm:spec_decode_num_drafts_total"), 10);
  EXPECT_EQ(
      value_of(page, "vllm:spec_decode_num_accepted_tokens_per_pos_total", {"position=\"1\""}), 3);
  EXPECT_EQ(
      value_of(page, "vllm:spec_decode_num_drafts_total", {"model_name=\"tiny\"", "engine=\"0\""}),
      10);
  EXPECT_EQ(value_of(page, "vllm:iteration_tokens_total_bucket", {"le=\"1.0\""}), 4);
  EXPECT_EQ(value_of(page, "vllm:engine_sleep_state", {"sleep_state=\"awake\""}), 1);
  EXPECT_EQ(value_of(page, "vllm:engine_sleep_state", {"sleep_state=\"discard_all\""}), 0);
  EngineStats asleep = some_stats();
  asleep.sleep_level = 2;
  const std::string later = metrics.text(asleep);
  EXPECT_EQ(value_of(later, "vllm:engine_sleep_state", {"sleep_state=\"awake\""}), 0);
  EXPECT_EQ(value_of(later, "vllm:engine_sleep_state", {"sleep_state=\"discard_all\""}), 1);
  EXPECT_EQ(value_of(page, "vllm:iteration_tokens_total_bucket", {"le=\"+Inf\""}), 7);
  EXPECT_EQ(value_of(page, "vllm:iteration_tokens_total_sum"), 94);
}

TEST(ServeMetrics, CountersFollowTheEngine) {
  ServeMetrics metrics("tiny", some_engine());
  EngineStats stats = some_stats();
  metrics.text(stats);
  stats.requests.num_output_tokens = 80;
  stats.num_running_requests = 0;
  const std::string page = metrics.text(stats);
  EXPECT_EQ(value_of(page, "vllm:generation_tokens_total"), 80);
  EXPECT_EQ(value_of(page, "vllm:num_requests_running"), 0);
}

TEST(ServeMetrics, CountsSearchesForToolCalls) {
  ServeMetrics metrics("tiny", some_engine());
  const std::string name = "vllm:tool_call_parser_invocations_total";
  const std::vector<std::string> found = {"mode=\"streaming\"", "outcome=\"tool_call\"",
                                          "request_type=\"responses\"", "model_name=\"tiny\""};
  EXPECT_EQ(value_of(metrics.text({}), name, found), 0);
  metrics.count_tool_parse({"responses", true, true});
  metrics.count_tool_parse({"responses", true, true});
  metrics.count_tool_parse({"chat_completions", false, false});
  EXPECT_EQ(value_of(metrics.text({}), name, found), 2);
  EXPECT_EQ(value_of(metrics.text({}), name,
                     {"mode=\"non_streaming\"", "outcome=\"no_tool_call\"", "chat_completions"}),
            1);
}

TEST(ServeMetrics, MeasuresARequest) {
  ServeMetrics metrics("tiny", some_engine());
  Request request = some_request();
  request.sampling.max_tokens = 30;
  metrics.add_request(request);
  metrics.add_output(output_of(1, false));
  metrics.add_output(output_of(3, false));
  metrics.add_output(output_of(1, true));
  const std::string page = metrics.text({});
  EXPECT_EQ(value_of(page, "vllm:time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(value_of(page, "vllm:inter_token_latency_seconds_count"), 2);
  EXPECT_EQ(value_of(page, "vllm:request_time_per_output_token_seconds_count"), 1);
  EXPECT_EQ(value_of(page, "vllm:e2e_request_latency_seconds_count"), 1);
  EXPECT_EQ(value_of(page, "vllm:request_prompt_tokens_sum"), 20);
  EXPECT_EQ(value_of(page, "vllm:request_prefill_kv_computed_tokens_sum"), 4);
  EXPECT_EQ(value_of(page, "vllm:request_generation_tokens_sum"), 5);
  EXPECT_EQ(value_of(page, "vllm:request_params_max_tokens_sum"), 30);
  EXPECT_EQ(value_of(page, "vllm:request_success_total", {"finished_reason=\"stop\""}), 1);
  EXPECT_EQ(value_of(page, "vllm:request_success_total", {"finished_reason=\"abort\""}), 0);
}

TEST(ServeMetrics, ChoicesAreSequences) {
  ServeMetrics metrics("tiny", some_engine());
  Request request = some_request();
  request.sampling.n = 2;
  metrics.add_request(request);
  RequestOutput first = output_of(2, true);
  first.request_finished = false;
  RequestOutput second = output_of(5, true);
  second.index = 1;
  second.stats.num_output_tokens = 9;
  metrics.add_output(first);
  metrics.add_output(second);
  const std::string page = metrics.text({});
  EXPECT_EQ(value_of(page, "vllm:time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(value_of(page, "vllm:request_params_n_sum"), 2);
  EXPECT_EQ(value_of(page, "vllm:request_prompt_tokens_count"), 1);
  EXPECT_EQ(value_of(page, "vllm:request_max_num_generation_tokens_sum"), 9);
}

TEST(ServeMetrics, RefusedAndUnknownRequestsCountForNothing) {
  ServeMetrics metrics("tiny", some_engine());
  metrics.add_request(some_request());
  metrics.drop_request("one");
  metrics.add_output(output_of(3, true));
  EXPECT_EQ(value_of(metrics.text({}), "vllm:e2e_request_latency_seconds_count"), 0);
}

TEST(ServeMetrics, RefusalsByReason) {
  ServeMetrics metrics("tiny", some_engine());
  metrics.count_rejection("max_num_queued_reqs");
  metrics.count_rejection("max_num_queued_reqs");
  metrics.count_rejection("draining");
  const std::string page = metrics.text({});
  EXPECT_EQ(value_of(page, "vllm:admission_rejections_total", {"max_num_queued_reqs"}), 2);
  EXPECT_EQ(value_of(page, "vllm:admission_rejections_total", {"draining"}), 1);
}

TEST(ServeMetrics, ThePageHasOlderNamesAndAnswers) {
  ServeMetrics metrics("tiny", some_engine());
  http::AccessRecord record;
  record.method = "POST";
  record.status = 404;
  metrics.count_http(record);
  const std::string page = metrics.text(some_stats());
  EXPECT_EQ(value_of(page, "vllm:gpu_cache_usage_perc"), 0.75);
  EXPECT_EQ(value_of(page, "http_requests_total", {"handler=\"none\"", "status=\"4xx\""}), 1);
}

TEST(ServeMetrics, WithoutDraftersNoneAreTold) {
  EngineInfo info = some_engine();
  info.drafters.clear();
  ServeMetrics metrics("tiny", info);
  EXPECT_EQ(metrics.text(some_stats()).find("spec_decode"), std::string::npos);
}

// Every line is a comment or a series with a number, and no series stands twice.
TEST(ServeMetrics, IsThePrometheusFormat) {
  ServeMetrics metrics("a \"model\" with \\ and\nmore", some_engine());
  std::istringstream lines(metrics.text(some_stats()));
  // Those of the process have no labels.
  const std::regex series(R"(^(process_[a-z_]+|[a-z0-9_:]+\{([a-z_]+="([^"\\]|\\.)*",?)+\}) \S+$)");
  std::vector<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# ", 0) == 0) continue;
    EXPECT_TRUE(std::regex_match(line, series)) << line;
    seen.push_back(line.substr(0, line.rfind(' ')));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(ServeMetrics, ManyThreads) {
  ServeMetrics metrics("tiny", some_engine());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics, id = std::to_string(i)] {
      RequestOutput first = output_of(2, false);
      RequestOutput last = output_of(1, true);
      first.request_id = last.request_id = id;
      for (int j = 0; j < 50; ++j) {
        metrics.add_request(some_request(id));
        metrics.add_output(first);
        metrics.add_output(last);
        if (j % 10 == 0) metrics.text(some_stats());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value_of(metrics.text(some_stats()), "vllm:e2e_request_latency_seconds_count"), 200);
}

}  // namespace
}  // namespace foretoken
