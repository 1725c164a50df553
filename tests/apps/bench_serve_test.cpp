#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "apps/command_run.h"
#include "support/fake_server.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

std::vector<std::string> arguments(const FakeServer& server, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"bench",      "serve",         "--base-url",
                                  server.url(), "--num-prompts", "6"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

CommandResult bench_serve(const FakeServer& server, const std::vector<std::string>& more,
                          const CommandSetting& setting = {}) {
  return run_command(arguments(server, more), setting);
}

// A server with one model, "org/m", that completes with `gap_ms` before each token.
FakeServer::Handler model_server(int gap_ms) {
  return [=](const FakeRequest& request, FakeReply& reply) {
    if (request.path == "/v1/models") return reply.json(200, R"({"data":[{"id":"org/m"}]})");
    if (request.method != "POST") return reply.json(404, "{}");
    const auto body = nlohmann::json::parse(request.body);
    test::stream_completion(reply, body.value("max_tokens", 3), milliseconds(gap_ms));
  };
}

std::vector<nlohmann::json> bodies_of(const FakeServer& server) {
  std::vector<nlohmann::json> bodies;
  for (const FakeRequest& request : server.requests()) {
    if (request.method == "POST") bodies.push_back(nlohmann::json::parse(request.body));
  }
  return bodies;
}

nlohmann::json read_json(const fs::path& path) { return nlohmann::json::parse(read_file(path)); }

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(BenchServe, RandomIdsToACompletionServer) {
  FakeServer server(model_server(5));
  const test::ScratchFolder scratch;
  const CommandResult result = bench_serve(server, {"--random-input-len",
                                                    "12",
                                                    "--random-output-len",
                                                    "5",
                                                    "--save-result",
                                                    "--save-detailed",
                                                    "--result-dir",
                                                    scratch.file("new/folder"),
                                                    "--result-filename",
                                                    "r.json",
                                                    "--metadata",
                                                    "version=0.1",
                                                    "tp=1",
                                                    "--label",
                                                    "x",
                                                    "--percentile-metrics",
                                                    "ttft,e2el",
                                                    "--metric-percentiles",
                                                    "50,99.5",
                                                    "--goodput",
                                                    "ttft:10000",
                                                    "e2el:0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("============ Serving Benchmark Result ============\n", 0), 0u);
  EXPECT_NE(result.out.find("Total generated tokens:                  30 "), std::string::npos);
  EXPECT_NE(result.out.find("P99.5 TTFT (ms):"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("TPOT"), std::string::npos);
  const nlohmann::json json = read_json(scratch.file("new/folder/r.json"));
  EXPECT_EQ(json["completed"], 6);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["model_id"], "org/m");
  EXPECT_EQ(json["tokenizer_id"], nullptr);
  EXPECT_EQ(json["version"], "0.1");
  EXPECT_EQ(json["tp"], "1");
  EXPECT_EQ(json["label"], "x");
  EXPECT_EQ(json["request_goodput"], 0.0);
  EXPECT_EQ(json["output_lens"], nlohmann::json({5, 5, 5, 5, 5, 5}));
  EXPECT_TRUE(json.contains("p99.5_e2el_ms"));
  const auto bodies = bodies_of(server);
  ASSERT_EQ(bodies.size(), 6u);
  for (const auto& body : bodies) {
    EXPECT_EQ(body["model"], "org/m");
    EXPECT_EQ(body["prompt"].size(), 12u);
    EXPECT_TRUE(body["prompt"][0].is_number());
    EXPECT_EQ(body["max_tokens"], 5);
    EXPECT_EQ(body["ignore_eos"], true);
  }
}

TEST(BenchServe, TheTokenizerOfAFolderMakesText) {
  FakeServer server(model_server(0));
  const CommandResult result =
      bench_serve(server, {"--model", bundled_model().string(), "--served-model-name", "m",
                           "--input-len", "20", "--output-len", "4", "--temperature", "0",
                           "--extra-body", R"({"top_k": 5, "seed": 1})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const auto& body : bodies_of(server)) {
    EXPECT_EQ(body["model"], "m");
    EXPECT_TRUE(body["prompt"].is_string());
    EXPECT_EQ(body["temperature"], 0.0);
    EXPECT_EQ(body["top_k"], 5);
    EXPECT_EQ(body["seed"], 1);
  }
}

TEST(BenchServe, CustomFileToAChatServer) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.method != "POST") return reply.json(404, "{}");
    reply.begin_stream();
    reply.event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
    reply.event(R"({"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]})");
    reply.event("[DONE]");
    reply.end_stream();
  });
  const test::ScratchFolder scratch;
  const std::string file = scratch.write(
      "p.jsonl", "{\"prompt\": \"one\", \"output_tokens\": 3}\n{\"prompt\": \"two\"}\n");
  const CommandResult result = bench_serve(
      server, {"--backend", "openai-chat", "--model", "m", "--dataset-name", "custom",
               "--dataset-path", file, "--request-rate", "200", "--max_concurrency", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::multiset<std::string> contents;
  for (const auto& body : bodies_of(server)) {
    contents.insert(body["messages"][0]["content"].get<std::string>());
    EXPECT_EQ(body["max_completion_tokens"], body["messages"][0]["content"] == "one" ? 3 : 256);
    EXPECT_FALSE(body.contains("ignore_eos"));
  }
  EXPECT_EQ(contents.count("one"), 3u);
  EXPECT_EQ(contents.count("two"), 3u);
  EXPECT_NE(result.out.find("Request rate configured (RPS):           200.00"), std::string::npos);
}

TEST(BenchServe, BundledPromptsAndTheKeyOfTheEnvironment) {
  FakeServer server(model_server(0));
  CommandSetting setting;
  setting.environment = {"OPENAI_API_KEY=secret"};
  const CommandResult result =
      bench_serve(server, {"--dataset-name", "prompts", "--header", "X-More=1=2"}, setting);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const FakeRequest& request : server.requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer secret");
    EXPECT_EQ(request.headers.at("x-more"), "1=2");
  }
}

TEST(BenchServe, ABaseUrlMayEndWithTheVersion) {
  FakeServer server(model_server(0));
  const CommandResult result =
      run_command({"bench", "serve", "--base-url", server.url() + "/v1/", "--num-prompts", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> paths;
  for (const FakeRequest& request : server.requests()) paths.push_back(request.path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"/v1/models", "/metrics", "/v1/completions", "/metrics"}));
}

TEST(BenchServe, FilesAreNamedAndAppended) {
  FakeServer server(model_server(0));
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  ASSERT_EQ(bench_serve(server, {"--save-result", "--result-dir", folder, "--request-rate", "500",
                                 "--max-concurrency", "3", "--plot-timeline", "--output-len", "3"})
                .exit_code,
            0);
  const auto files = files_in(scratch.path());
  ASSERT_EQ(files.size(), 3u);
  const std::string start = "openai-500.0qps-concurrency3-m-2";
  for (const fs::path& file : files)
    EXPECT_EQ(file.filename().string().rfind(start, 0), 0u) << file;
  EXPECT_EQ(files[0].extension(), ".json");
  EXPECT_NE(files[1].string().find(".latency.svg"), std::string::npos);
  EXPECT_NE(files[2].string().find(".timeline.svg"), std::string::npos);
  for (size_t i = 1; i < 3; ++i) {
    const std::string svg = read_file(files[i]);
    EXPECT_EQ(svg.rfind("<?xml", 0), 0u);
    EXPECT_NE(svg.find("org/m on http://127.0.0.1:"), std::string::npos);
    EXPECT_NE(svg.find("</svg>"), std::string::npos);
  }
  EXPECT_FALSE(read_json(files[0]).contains("ttfts"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(bench_serve(server, {"--append-result", "--result-dir", folder, "--result-filename",
                                   "all.json"})
                  .exit_code,
              0);
  }
  const std::string all = read_file(scratch.file("all.json"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1);
}

TEST(BenchServe, FailuresAreListedAndTheOthersCount) {
  std::atomic<int> count{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    if (request.method == "POST" && count++ % 3 == 0) {
      return reply.json(500, R"({"error":{"message":"no luck"}})");
    }
    model_server(0)(request, reply);
  });
  const CommandResult result = bench_serve(server, {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("2 of 6 requests failed:\n  2 x HTTP 500: no luck\n"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("Failed requests:                         2 "), std::string::npos);
}

TEST(BenchServe, NothingSucceededIsAnError) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(503, "busy"); });
  const CommandResult result = bench_serve(server, {"--model", "m"});
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_EQ(result.errors()[0], "no request succeeded");
  EXPECT_NE(result.err.find("6 x HTTP 503: busy"), std::string::npos);
}

TEST(BenchServe, NoServer) {
  const CommandResult result = run_command(
      {"bench", "serve", "--port", std::to_string(test::closed_port()), "--num-prompts", "2"});
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.errors().size(), 1u);
  EXPECT_NE(result.errors()[0].find("Connection refused"), std::string::npos);
}

TEST(BenchServe, AnInterruptionTellsWhatWasMeasured) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    const bool first = request.body.find("one") != std::string::npos;
    if (request.method == "POST" && !first) reply.pause(milliseconds(600'000));
    model_server(0)(request, reply);
  });
  const test::ScratchFolder scratch;
  std::string lines = "{\"prompt\": \"one\"}\n";
  for (int i = 1; i < 6; ++i) lines += "{\"prompt\": \"slow\"}\n";
  const std::string file = scratch.write("p.jsonl", lines);
  Command command(arguments(
      server,
      {"--dataset-name", "custom", "--dataset-path", file, "--disable-shuffle",
       "--custom-output-len", "2", "--save-result", "--result-filename", scratch.file("r.json")}));
  ASSERT_TRUE(command.wait_for("1 of 6 requests done"));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_NE(result.out.find("Successful requests:                     1 "), std::string::npos)
      << result.out << result.err;
  EXPECT_NE(result.out.find("Unfinished requests:                     5 "), std::string::npos);
  const nlohmann::json json = read_json(scratch.file("r.json"));
  EXPECT_EQ(json["completed"], 1);
  EXPECT_EQ(json["num_unfinished"], 5);
}

TEST(BenchServe, AWrongFlagIsNamed) {
  FakeServer server(model_server(0));
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--request-ratee", "5"}, "did you mean '--request-rate'?"},
      {{"--dataset-name", "random-mm"}, "--dataset-name"},
      {{"--dataset-name", "custom"}, "--dataset-path FILE"},
      {{"--dataset-path", "x.json"}, "--dataset-name random reads no file"},
      {{"--dataset-name", "custom", "--dataset-path", "/no/such/file"}, "/no/such/file"},
      {{"--goodput", "itl:5"}, "--goodput"},
      {{"--metadata", "noequals"}, "--metadata takes KEY=VALUE"},
      {{"--header", "noequals"}, "--header takes KEY=VALUE"},
      {{"--percentile-metrics", "ttft,speed"}, "'speed'"},
      {{"--metric-percentiles", "101"}, "--metric-percentiles"},
      {{"--endpoint", "/v1/chat/completions"}, "--endpoint like /v1/completions"},
      {{"--request-rate", "0"}, "--request-rate must be above 0"},
      {{"--burstiness", "-1"}, "--burstiness"},
      {{"--ramp-up-strategy", "linear"}, "--ramp-up-start-rps"},
      {{"--random-range-ratio", "1.5"}, "--random-range-ratio"},
      {{"--extra-body", "[1]"}, "--extra-body"},
      {{"--timeline-itl-thresholds", "5"}, "--timeline-itl-thresholds"},
      {{"--backend", "openai-chat"}, "--tokenizer"},
      {{"--tokenizer", "/no/such/folder"}, "/no/such/folder"},
  };
  for (const auto& [flags, message] : cases) {
    const CommandResult result = bench_serve(server, flags);
    EXPECT_NE(result.exit_code, 0) << message;
    ASSERT_EQ(result.errors().size(), 1u) << message << "\n" << result.err;
    EXPECT_NE(result.errors()[0].find(message), std::string::npos) << result.errors()[0];
  }
  EXPECT_TRUE(bodies_of(server).empty()) << "nothing is sent with wrong flags";
}

TEST(BenchServe, ThroughputReadsSpecBenchFilesToo) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("q.jsonl", R"({"category": "a", "turns": ["Once upon"]})"
                                                    "\n"
                                                    R"({"category": "b", "turns": ["a time"]})");
  const auto throughput = [&](const std::string& category) {
    return run_command({"bench", "throughput", "--model", bundled_model().string(), "--log-level",
                        "error", "--dataset-name", "spec_bench", "--dataset-path", file,
                        "--spec-bench-category", category, "--num-prompts", "2", "--output-len",
                        "4"});
  };
  const CommandResult good = throughput("b");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(good.out.find("Total num output tokens:  8"), std::string::npos) << good.out;
  EXPECT_NE(throughput("c").err.find("it has: a, b"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
