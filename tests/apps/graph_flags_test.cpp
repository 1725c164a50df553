#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

using Flags = std::vector<std::string>;

CommandResult generate_graphed(const Flags& flags) {
  Flags all = {"generate",      "--model", bundled_model().string(), "--prompt", "Once",
               "--temperature", "0",       "--max-tokens",           "8",        "--log-level",
               "error"};
  all.insert(all.end(), flags.begin(), flags.end());
  return run_command(all);
}

// Without the line about speed.
std::string text_of(const CommandResult& result) {
  return result.out.substr(0, result.out.find("\n\n"));
}

void expect_graph_refused(const Flags& flags, const std::string& part, int exit_code = 1) {
  const CommandResult result = generate_graphed(flags);
  EXPECT_EQ(result.exit_code, exit_code) << flags.back();
  ASSERT_EQ(result.errors().size(), 1u) << flags.back() << result.err;
  EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
}

TEST(GraphFlags, VllmsNamesAndShortForms) {
  const CommandResult plain = generate_graphed({});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  for (const Flags& flags : std::vector<Flags>{
           {"--enforce-eager"},
           {"-cc.cudagraph_mode=PIECEWISE"},
           {"-cc.cudagraph_mode", "full_and_piecewise"},
           {"--compilation-config.cudagraph_mode=NONE"},
           {"--cudagraph-mode", "FULL_DECODE_ONLY", "--cudagraph-capture-sizes", "1", "2", "4"},
           {"--cudagraph_capture_sizes=1,8"},
           {"-cc.cudagraph_capture_sizes=[1, 8]"},
           {"-cc.cudagraph_capture_sizes+", "1,8", "-cc.cudagraph_capture_sizes+=24"},
           {"--max-cudagraph-capture-size", "16"},
           {"-cc", R"({"cudagraph_mode": "FULL", "cudagraph_capture_sizes": [1, 2, 24]})"},
           {"--compilation-config={\"max_cudagraph_capture_size\": 8}"},
           {"--max-cudagraph-capture-size", "2147483647"},
           {"-cc", R"({"mode": 3, "custom_ops": ["all"], "cudagraph_mode": "FULL"})"},
           {"-cc.level=3"},
           {"-cc", "3"},
           {"-O3"}}) {
    const CommandResult result = generate_graphed(flags);
    EXPECT_EQ(result.exit_code, 0) << flags[0] << result.err;
    EXPECT_EQ(text_of(result), text_of(plain)) << flags[0];
  }
}

TEST(GraphFlags, WhatIsWrongIsNamed) {
  expect_graph_refused({"--cudagraph-mode", "MOST"},
                       "cudagraph_mode 'MOST' is unknown; use NONE, ");
  expect_graph_refused({"-cc", "{\"cudagraph_mode\": 3}"}, "'cudagraph_mode' must be a string");
  expect_graph_refused({"-cc", "{\"cudagraph_mod\": \"FULL\"}"}, "did you mean 'cudagraph_mode'?");
  expect_graph_refused({"-cc", "{\"cudagraph_mode\": "}, "--compilation-config");
  expect_graph_refused(
      {"-cc", "{\"cudagraph_mode\": \"FULL\"}", "--cudagraph-mode", "NONE"},
      "--cudagraph-mode and 'cudagraph_mode' of --compilation-config say the same");
  expect_graph_refused({"--cudagraph-capture-sizes", "1,x"}, "'x' is no whole number", 2);
  expect_graph_refused({"--cudagraph-capture-sizes", "0"}, "--cudagraph-capture-sizes 0: ");
  expect_graph_refused({"--max-cudagraph-capture-size", "-1"}, "--max-cudagraph-capture-size -1: ");
  expect_graph_refused({"-cc", "{\"cudagraph_capture_sizes\": [1.5]}"},
                       "an array of whole numbers");
  expect_graph_refused({"--cudagraph-capture-sizes", "9000"},
                       "within --max-num-batched-tokens 512; name a smaller size");
  expect_graph_refused({"--step-timeout-seconds", "-1"}, "--step-timeout-seconds", 2);
}

TEST(BenchHost, PrintsThePhasesOfAStep) {
  const CommandResult result =
      run_command({"bench", "host", "--model", bundled_model().string(), "--batch-size", "16",
                   "--input-len", "20", "--output-len", "40", "-sc",
                   R"({"method": "ngram", "num_speculative_tokens": 3, "length_policy": "fixed"})",
                   "--log-level", "error"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {"microseconds a step", "plan", "encode", "submit", "reconcile", "wait"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << result.out;
  }
}

TEST(BenchHost, WhatItCannotMeasureIsRefused) {
  const auto expect_error = [](Flags flags, const char* message, int exit_code) {
    flags.insert(flags.begin(), {"bench", "host", "--model", bundled_model().string()});
    const CommandResult result = run_command(flags);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  };
  for (const char* ranks : {"-tp", "-pp", "-dp"}) {
    expect_error({ranks, "2"}, "bench host measures one rank", 1);
  }
  expect_error({"--output-len", "3000"}, "exceed max_model_len 2048", 1);
  expect_error({"--output-len", "2147483647"}, "exceed max_model_len 2048", 1);
  expect_error({"--batch-size", "2147483647"}, "raise --max-num-seqs", 1);
  expect_error({"--step-time-table", "/nonexistent/t.json"}, "name a file in a folder that", 2);
}

}  // namespace
}  // namespace foretoken
