#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include "conformance/drafter_cases.h"
#include "support/resident_memory.h"

// Many requests: nothing is left behind, and acceptance does not decay.

namespace foretoken {
namespace {

constexpr int kManyRequests = 10000;  // fewer, as under sanitizers, tell nothing of memory

EngineConfig all_drafters_config(int num_blocks) {
  EngineConfig config = config_of({.steps_in_flight = 2,
                                   .max_batched_tokens = 64,
                                   .num_blocks = num_blocks,
                                   .prefix_caching = true},
                                  bundled_model());
  config.max_num_seqs = 16;
  for (const char* name : {"eagle3", "draft_model", "mtp", "ngram"}) {
    config.speculative.push_back(bundled_drafter(name, 3).config);
  }
  return config;
}

Request random_request(std::mt19937& random) {
  static const char* const kMethods[] = {"", "eagle3", "draft_model", "mtp", "ngram"};
  Request request;
  // Few beginnings, so that prompts meet in the prefix cache with different drafters.
  const int beginning = static_cast<int>(random() % 6);
  const int length = 1 + static_cast<int>(random() % 50);
  for (int i = 0; i < length; ++i) {
    request.prompt_token_ids.push_back(100 + (beginning * 131 + i * 7) % 2000);
  }
  request.sampling.max_tokens = 1 + static_cast<int>(random() % 12);
  request.sampling.temperature = random() % 2 == 0 ? 0.0f : 1.0f;
  request.sampling.seed = random() % 100;
  request.speculative.method = kMethods[random() % 5];
  if (random() % 4 == 0) request.speculative.enabled = false;
  if (random() % 4 == 0) request.speculative.num_speculative_tokens = 1;
  return request;
}

TEST(DrafterLoad, TenThousandRequestsLeaveNothingBehind) {
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(all_drafters_config(60), &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  const int num_requests = num_test_prompts(200) * 50;
  std::atomic<int> num_finished{0};
  std::mt19937 random(3);
  int num_aborted = 0;
  int64_t resident_half_way = 0;
  for (int i = 0; i < num_requests; ++i) {
    if (i == num_requests / 2) resident_half_way = test::resident_bytes();
    std::string id;
    const Status status = engine->submit(
        random_request(random),
        [&](const RequestOutput& output) {
          EXPECT_NE(output.finish_reason, FinishReason::kError) << output.status.message();
          if (output.request_finished) num_finished.fetch_add(1);
        },
        &id);
    ASSERT_TRUE(status.ok()) << status.message();
    if (random() % 8 == 0) {
      engine->abort(id);
      ++num_aborted;
    }
    while (i - num_finished.load() > 64)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  while (num_finished.load() < num_requests) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  expect_all_free(*engine);
  const EngineStats stats = engine->stats();
  ASSERT_EQ(stats.drafters.size(), 4u);
  for (const RequestStats& drafter : stats.drafters) EXPECT_GT(drafter.num_accepted_tokens, 0);
  const int64_t grown = test::resident_bytes() - resident_half_way;
  if (num_requests >= kManyRequests) {
    EXPECT_LT(grown, 32 << 20);
  }
  std::cout << num_requests << " requests, " << num_aborted << " aborted, "
            << stats.requests.num_preemptions << " preemptions, " << stats.num_steps
            << " steps, second half " << grown / 1024 << " KiB\n";
}

// Acceptance of later requests is that of the first: nothing stale is ever hit or drafted from.
TEST(DrafterLoad, AcceptanceStaysFlatWithPrefixCaching) {
  EngineConfig config =
      config_of({.steps_in_flight = 2, .num_blocks = 400, .prefix_caching = true}, bundled_model());
  config.speculative = {bundled_drafter("eagle3", 3).config};
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  const std::vector<std::string> texts = bench_prompts(100);
  const int num_requests = num_test_prompts(200) * 100;
  const int num_parts = 10;
  std::vector<double> rates;
  for (int part = 0; part < num_parts; ++part) {
    RequestStats sum;
    for (int begin = 0; begin < num_requests / num_parts; begin += 100) {
      std::vector<Request> requests;
      for (size_t i = 0; i < texts.size(); ++i) {
        Request request;
        request.prompt = texts[i].substr(0, 120);
        request.sampling.max_tokens = 6;
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        requests.push_back(std::move(request));
      }
      for (const RequestOutput& output : engine->generate(std::move(requests))) sum += output.stats;
    }
    rates.push_back(static_cast<double>(sum.num_accepted_tokens) /
                    static_cast<double>(sum.num_draft_tokens));
  }
  for (const double rate : rates) EXPECT_NEAR(rate, rates[0], 0.01);
  std::cout << num_requests << " requests, acceptance " << rates.front() << " at first, "
            << rates.back() << " at last\n";
  expect_all_free(*engine);
}

}  // namespace
}  // namespace foretoken
