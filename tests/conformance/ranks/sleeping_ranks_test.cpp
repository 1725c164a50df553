#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "conformance/layouts.h"
#include "support/folders.h"

// Engines whose ranks sleep together, and engines that have experts together: texts behind it are
// those before it, whatever drafts.

namespace foretoken {
namespace {

using Outputs = std::vector<std::vector<RequestOutput>>;

class SleepingRanks : public RankTest<Layout> {
 protected:
  static EngineConfig config() {
    const std::string folder =
        std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
    EngineConfig config = config_of({.steps_in_flight = 2, .max_batched_tokens = 128}, folder);
    config.dtype = "float32";
    config.enable_sleep_mode = true;
    for (const char* method : {"ngram", "mtp"}) {
      SpeculativeConfig& drafter = config.speculative.emplace_back();
      drafter.method = method;
      drafter.num_speculative_tokens = 3;
      drafter.length_policy = "fixed";
    }
    GetParam().apply(config);
    return config;
  }
  static Outputs outputs_of(Engine& engine) {
    Outputs all;
    for (const char* method : {"", "ngram", "mtp"}) {
      for (const bool sampled : {false, true}) {
        all.push_back(run_in_batches(engine, layout_requests(method, sampled, 2)));
      }
    }
    return all;
  }
  static void expect_equal(const Outputs& before, const Outputs& after) {
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      for (size_t j = 0; j < before[i].size(); ++j) {
        EXPECT_EQ(before[i][j].token_ids, after[i][j].token_ids) << i << " " << j;
      }
    }
  }
};

TEST_P(SleepingRanks, TextsAreTheSameAtEachLevelAndInParts) {
  const auto engine = start_engine(config());
  ASSERT_NE(engine, nullptr);
  const Outputs before = outputs_of(*engine);
  for (const int level : {1, 2, 1}) {
    const Status slept = engine->sleep(level, level == 1);
    ASSERT_TRUE(slept.ok()) << slept.message();
    for (const EngineStats& each : engine->stats().engines) EXPECT_EQ(each.sleep_level, level);
    ASSERT_TRUE(engine->wake_up({"weights"}).ok());
    EXPECT_TRUE(engine->is_sleeping());
    const Status woken = engine->wake_up({"kv_cache"});
    ASSERT_TRUE(woken.ok()) << woken.message();
    EXPECT_FALSE(engine->is_sleeping());
    expect_equal(before, outputs_of(*engine));
  }
  expect_all_free(*engine);
}

// Requests that run, wait and come meanwhile end in one way or the other, and nothing hangs.
TEST_P(SleepingRanks, UnderLoad) {
  const auto engine = start_engine(config());
  ASSERT_NE(engine, nullptr);
  std::vector<Request> requests = layout_requests("mtp", false, 4);
  const std::vector<RequestOutput> before = run_in_batches(*engine, requests);
  std::atomic<bool> stops{false};
  std::atomic<int> num_whole{0};
  std::vector<std::thread> clients;
  for (size_t i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      while (!stops.load()) {
        const RequestOutput output = engine->generate({requests[i]})[0];
        EXPECT_TRUE(output.status.ok()) << output.status.message();
        if (output.finish_reason == FinishReason::kAbort) continue;
        EXPECT_EQ(output.token_ids, before[i].token_ids);
        num_whole.fetch_add(1);
      }
    });
  }
  std::mt19937 random(5);
  for (int turn = 0; turn < 8; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    const Status slept = engine->sleep(1 + static_cast<int>(random() % 2), random() % 2 == 0);
    ASSERT_TRUE(slept.ok()) << slept.message();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
    const Status woken = engine->wake_up();
    ASSERT_TRUE(woken.ok()) << woken.message();
  }
  stops.store(true);
  for (std::thread& client : clients) client.join();
  EXPECT_GT(num_whole.load(), 0);
  expect_all_free(*engine);
}

// What sleeps ends with its engine, and a wait for requests can be given up.
TEST_P(SleepingRanks, EndsAsleepAndGivesUp) {
  const auto engine = start_engine(config());
  ASSERT_NE(engine, nullptr);
  Request long_one = layout_requests("", false, 1)[0];
  long_one.sampling.max_tokens = 150;
  long_one.sampling.ignore_eos = true;
  auto runs = engine->generate_async(long_one);
  std::stop_source recall;
  recall.request_stop();
  const Status given_up = engine->sleep(1, false, nullptr, recall.get_token());
  // The request may have ended before.
  EXPECT_TRUE(given_up.ok() || given_up.code() == StatusCode::kAborted) << given_up.message();
  EXPECT_TRUE(engine->wake_up().ok());
  EXPECT_TRUE(runs.get()[0].status.ok());
  ASSERT_TRUE(engine->sleep(2).ok());
  auto waits = engine->generate_async(long_one);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SleepingRanks,
                         testing::Values(Layout{.tp = 2}, Layout{.pp = 2}, Layout{.tp = 2, .pp = 2},
                                         Layout{.tp = 2, .dcp = 2}, Layout{.tp = 2, .ep = true},
                                         Layout{.dp = 2, .ep = true},
                                         Layout{.tp = 2, .dp = 2, .ep = true}),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace foretoken
