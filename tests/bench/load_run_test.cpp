#include "bench/load_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "support/fake_server.h"
#include "support/gate.h"

namespace foretoken::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using test::kPatience;
using test::stream_completion;

// Longer than any test; a server's pause ends with the server.
constexpr milliseconds kForEver{600'000};

std::vector<Sample> samples_of(size_t count, int output_len = 4) {
  std::vector<Sample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].text = "prompt " + std::to_string(i);
    samples[i].output_len = output_len;
    samples[i].prompt_len = 2;
  }
  return samples;
}

LoadOptions load_options() {
  LoadOptions options;
  options.backend = find_backend("openai");
  options.endpoint = options.backend->endpoint;
  options.models = {"m"};
  return options;
}

std::unique_ptr<net::Client> client_of(const std::string& url) {
  net::ClientOptions options;
  options.request_timeout = kPatience;
  return net::Client::create(net::parse_url(url).value(), options).value();
}

LoadResult run(const FakeServer& server, const LoadOptions& options,
               const std::vector<Sample>& samples) {
  const auto client = client_of(server.url());
  Result<LoadResult> result = run_load(*client, options, samples);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(result).value();
}

// Completions with a few ms before each token; nothing else is known.
FakeServer::Handler completions(int gap_ms) {
  return [=](const FakeRequest& request, FakeReply& reply) {
    if (request.path != "/v1/completions") return reply.json(404, "{}");
    const auto body = nlohmann::json::parse(request.body);
    stream_completion(reply, body["max_tokens"], milliseconds(gap_ms));
  };
}

size_t num_posts(const FakeServer& server) {
  const auto requests = server.requests();
  return static_cast<size_t>(std::count_if(requests.begin(), requests.end(),
                                           [](const auto& r) { return r.method == "POST"; }));
}

TEST(LoadRun, MeasuresWhatTheServerDoes) {
  FakeServer server(completions(40));
  LoadOptions options = load_options();
  options.request_id_prefix = "run-";
  options.headers = {{"Authorization", "Bearer key"}};
  const LoadResult result = run(server, options, samples_of(3));
  ASSERT_EQ(result.records.size(), 3u);
  EXPECT_EQ(result.num_unfinished, 0u);
  EXPECT_GT(result.duration, 0.16);
  for (const RequestRecord& record : result.records) {
    EXPECT_TRUE(record.success) << record.error;
    EXPECT_EQ(record.text, "t0 t1 t2 t3 ");
    EXPECT_EQ(record.output_tokens, 4);
    EXPECT_EQ(record.prompt_len, 7) << "as the server says";
    EXPECT_GE(record.ttft, 0.039);
    ASSERT_EQ(record.itls.size(), 3u);
    // A busy host adds to all and moves the borders between tokens.
    EXPECT_GE(std::accumulate(record.itls.begin(), record.itls.end(), record.ttft), 0.155);
  }
  std::set<std::string> ids;
  for (const FakeRequest& request : server.requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer key");
    if (request.method != "POST") continue;
    EXPECT_EQ(request.headers.at("content-type"), "application/json");
    ids.insert(request.headers.at("x-request-id"));
  }
  EXPECT_EQ(ids, (std::set<std::string>{"run-0", "run-1", "run-2"}));
}

TEST(LoadRun, NeverMoreThanMaxConcurrency) {
  std::atomic<int> num_asked{0};
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    if (request.method != "POST") return reply.json(404, "{}");
    const int now = ++running;
    const int round = num_asked++ / 3;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    reply.wait_until([&] { return num_asked >= 3 * (round + 1); });
    reply.pause(milliseconds(20));
    --running;
    stream_completion(reply, 1, milliseconds(0));
  });
  LoadOptions options = load_options();
  options.max_concurrency = 3;
  const LoadResult result = run(server, options, samples_of(15));
  EXPECT_EQ(most, 3);
  EXPECT_EQ(result.records.size(), 15u);
  const RequestRecord& fourth = result.records[3];
  EXPECT_LE(result.records[0].start_time, fourth.start_time - fourth.queue_time + 1e-6)
      << "it was sent before the fourth came";
  EXPECT_GE(result.records[14].queue_time, 0.08) << "it waited for four rounds";
  EXPECT_GE(result.records[14].start_time, result.records[14].queue_time);
}

TEST(LoadRun, RequestsComeAtTheRate) {
  FakeServer server(completions(1));
  LoadOptions options = load_options();
  options.arrivals.request_rate = 100;
  options.arrivals.burstiness = 1000;
  const LoadResult result = run(server, options, samples_of(40, 1));
  for (size_t i = 0; i < 40; ++i) {
    const double due = static_cast<double>(i + 1) * 0.01;
    EXPECT_GE(result.records[i].start_time, due - 0.005) << i;
    EXPECT_LT(result.records[i].start_time, due + 120) << i << ", however busy the host is";
  }
}

TEST(LoadRun, RampsNoteTheirRates) {
  FakeServer server(completions(0));
  LoadOptions options = load_options();
  options.arrivals.ramp_up = RampUp::kLinear;
  options.arrivals.start_rps = 50;
  options.arrivals.end_rps = 60;
  const LoadResult result = run(server, options, samples_of(12, 1));
  ASSERT_EQ(result.rate_changes.size(), 11u);
  EXPECT_EQ(result.rate_changes.front().rps, 50);
  EXPECT_EQ(result.rate_changes.back().rps, 60);
  EXPECT_EQ(result.rate_changes[0].timestamp.size(),
            std::string("2026-11-22T07:30:00.123456").size());
}

TEST(LoadRun, OneFailureDoesNotEndTheRun) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    const std::string& body = request.body;
    if (body.find("prompt 1\"") != std::string::npos) {
      return reply.json(500, R"({"error":{"message":"out of luck"}})");
    }
    if (body.find("prompt 2\"") != std::string::npos) {
      reply.begin_stream();
      reply.event(R"({"choices":[{"text":"half"}]})");
      return reply.close();
    }
    if (body.find("prompt 3\"") != std::string::npos) return reply.close();
    if (request.method != "POST") return reply.json(404, "{}");
    stream_completion(reply, 2, milliseconds(1));
  });
  const LoadResult result = run(server, load_options(), samples_of(6));
  ASSERT_EQ(result.records.size(), 6u);
  EXPECT_TRUE(result.records[0].success);
  EXPECT_EQ(result.records[1].error, "HTTP 500: out of luck");
  EXPECT_EQ(result.records[1].prompt_len, 2) << "counted here";
  EXPECT_NE(result.records[2].error.find("closed the connection"), std::string::npos);
  EXPECT_EQ(result.records[2].text, "half");
  EXPECT_NE(result.records[3].error.find("closed the connection"), std::string::npos);
  EXPECT_TRUE(result.records[4].success);
  EXPECT_TRUE(result.records[5].success);
}

TEST(LoadRun, EvenWhenAllFailThereAreRecords) {
  const auto client = client_of("http://127.0.0.1:" + std::to_string(test::closed_port()));
  const LoadResult result = run_load(*client, load_options(), samples_of(3)).value();
  ASSERT_EQ(result.records.size(), 3u);
  for (const RequestRecord& record : result.records) {
    EXPECT_NE(record.error.find("Connection refused"), std::string::npos);
  }
}

TEST(LoadRun, WarmUpsDoNotCount) {
  FakeServer server(completions(1));
  LoadOptions options = load_options();
  options.num_warmups = 5;
  options.max_concurrency = 2;
  std::vector<std::string> told;
  options.tell = [&](const std::string& line) { told.push_back(line); };
  const LoadResult result = run(server, options, samples_of(3));
  EXPECT_EQ(result.records.size(), 3u);
  EXPECT_EQ(num_posts(server), 8u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], "Warming up with 5 requests");
}

TEST(LoadRun, WaitsUntilTheServerIsReady) {
  std::atomic<int> num_asked{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    if (++num_asked <= 2) return reply.json(503, R"({"error":"loading"})");
    completions(0)(request, reply);
  });
  LoadOptions options = load_options();
  options.ready_timeout_s = 600;
  const LoadResult result = run(server, options, samples_of(2));
  EXPECT_TRUE(result.records[0].success);
  EXPECT_EQ(num_posts(server), 5u) << "two in vain, one that is answered, two that count";
}

TEST(LoadRun, AServerThatNeverGetsReadyIsAnError) {
  FakeServer failing(
      [](const FakeRequest&, FakeReply& reply) { reply.json(503, R"({"error":"loading"})"); });
  FakeServer hanging([](const FakeRequest&, FakeReply& reply) { reply.pause(kForEver); });
  LoadOptions options = load_options();
  const auto expect_error = [&](FakeServer& server, int seconds, const std::string& reason) {
    options.ready_timeout_s = seconds;
    const auto client = client_of(server.url());
    const auto start = steady_clock::now();
    const Status status = run_load(*client, options, samples_of(2)).status();
    EXPECT_NE(status.message().find("not ready within " + std::to_string(seconds) + " s"),
              std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
    EXPECT_LT(steady_clock::now() - start, kPatience);
  };
  expect_error(failing, 10, "HTTP 503: loading");
  expect_error(hanging, 1, "no answer");
}

TEST(LoadRun, AnInterruptionKeepsWhatIsDone) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.method != "POST") return reply.json(404, "{}");
    if (request.body.find("prompt 0\"") == std::string::npos) reply.pause(kForEver);
    stream_completion(reply, 2, milliseconds(1));
  });
  LoadOptions options = load_options();
  options.max_concurrency = 2;
  auto end = steady_clock::time_point::max();
  options.progress = [&](size_t num_done, size_t) {
    if (num_done > 0) end = std::min(end, steady_clock::now() + milliseconds(400));
  };
  options.interrupted = [&] { return steady_clock::now() > end; };
  const auto start = steady_clock::now();
  const LoadResult result = run(server, options, samples_of(10));
  EXPECT_LT(steady_clock::now() - start, kPatience);
  ASSERT_EQ(result.records.size(), 1u);
  EXPECT_TRUE(result.records[0].success);
  EXPECT_EQ(result.num_unfinished, 9u);
  EXPECT_GE(result.duration, 0.4);
}

TEST(LoadRun, DraftingIsReadFromTheMetrics) {
  std::atomic<int> reads{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    if (request.path != "/metrics") return completions(0)(request, reply);
    const int times = ++reads;
    const auto line = [&](const char* name, int value) {
      return std::string("vllm:spec_decode_num_") + name + "_total{engine=\"0\"} " +
             std::to_string(value * times) + "\n";
    };
    reply.json(200, line("drafts", 10) + line("draft_tokens", 30) + line("accepted_tokens", 15));
  });
  const LoadResult result = run(server, load_options(), samples_of(1));
  ASSERT_TRUE(result.drafts.has_value());
  EXPECT_EQ(result.drafts->num_drafts, 10);
  EXPECT_DOUBLE_EQ(result.drafts->acceptance_rate, 50);
  EXPECT_DOUBLE_EQ(result.drafts->acceptance_length, 2.5);
}

TEST(LoadRun, ModelsAreDealtInTurn) {
  FakeServer server(completions(0));
  LoadOptions options = load_options();
  options.models = {"a", "b", "c"};
  options.models_in_turn = true;
  options.max_concurrency = 1;
  run(server, options, samples_of(6));
  std::string order;
  for (const FakeRequest& request : server.requests()) {
    if (request.method != "POST") continue;
    order += nlohmann::json::parse(request.body)["model"].get<std::string>();
  }
  EXPECT_EQ(order, "abcabc");
}

TEST(LoadRun, ProbesRunBesideTheLoad) {
  std::atomic<int> num_probes{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    if (request.body.find("\"Hi\"") != std::string::npos) ++num_probes;
    // A probe is sent when the one before has ended.
    if (request.body.find("prompt 3\"") != std::string::npos) {
      reply.wait_until([&] { return num_probes > 3; });
    }
    completions(1)(request, reply);
  });
  LoadOptions options = load_options();
  options.max_concurrency = 1;
  options.probe_rate = 50;
  const LoadResult result = run(server, options, samples_of(4));
  EXPECT_EQ(result.records.size(), 4u);
  EXPECT_GE(result.probes.size(), 3u);
  for (const RequestRecord& probe : result.probes) EXPECT_EQ(probe.output_tokens, 1);
}

TEST(LoadRun, TheProfilerIsSwitched) {
  FakeServer server(completions(0));
  LoadOptions options = load_options();
  options.profile = true;
  std::vector<std::string> told;
  options.tell = [&](const std::string& line) { told.push_back(line); };
  run(server, options, samples_of(1));
  EXPECT_EQ(told,
            (std::vector<std::string>{"/start_profile: HTTP 404", "/stop_profile: HTTP 404"}));
}

TEST(LoadRun, ProgressGoesToTheEnd) {
  FakeServer server(completions(20));
  LoadOptions options = load_options();
  size_t last = 0;
  options.progress = [&](size_t num_done, size_t num_all) {
    EXPECT_EQ(num_all, 6u);
    EXPECT_GE(num_done, last);
    last = num_done;
  };
  options.max_concurrency = 1;
  run(server, options, samples_of(6));
  EXPECT_EQ(last, 6u);
}

TEST(LoadRun, APromptThatCannotBeSentIsAnError) {
  const auto client = client_of("http://127.0.0.1:1");
  LoadOptions options = load_options();
  options.backend = find_backend("openai-chat");
  std::vector<Sample> samples(1);
  samples[0].ids = {1};
  EXPECT_NE(run_load(*client, options, samples).status().message().find("--tokenizer"),
            std::string::npos);
  EXPECT_FALSE(run_load(*client, options, {}).ok());
}

}  // namespace
}  // namespace foretoken::bench
