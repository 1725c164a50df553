#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>
#include <utility>

#include "conformance/drafter_cases.h"
#include "device/resident_memory.h"
#include "draft/registry.h"

// Many requests: nothing is left behind, and acceptance does not decay.

namespace foretoken {
namespace {

constexpr int kManyRequests = 10000;  // fewer, as under sanitizers, tell nothing of memory

// As many methods of the registry as an engine takes, from one on.
std::vector<std::string> drafters_from(size_t first) {
  const std::vector<std::string> all = drafter_names();
  const size_t last = std::min(all.size(), first + kMaxDrafters);
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(last)};
}

// Those, and lists of each look-up among them before each other one.
std::vector<std::string> methods_of(const std::vector<std::string>& names) {
  std::vector<std::string> methods = {""};
  for (const std::string& name : names) {
    methods.push_back(name);
    for (const std::string& other : names) {
      if (declared_traits(name).looks_up && other != name) methods.push_back(name + "+" + other);
    }
  }
  return methods;
}

EngineConfig drafters_config(const std::vector<std::string>& names, int num_blocks) {
  EngineConfig config = config_of({.steps_in_flight = 2,
                                   .max_batched_tokens = 64,
                                   .num_blocks = num_blocks,
                                   .prefix_caching = true},
                                  bundled_model());
  config.max_num_seqs = 16;
  for (const std::string& name : names) {
    config.speculative.push_back(bundled_drafter(name, 3).config);
  }
  return config;
}

Request random_load_request(std::mt19937& random, const std::vector<std::string>& methods,
                            int max_output_tokens) {
  Request request;
  // Few beginnings, so that prompts meet in the prefix cache with different drafters.
  const int beginning = static_cast<int>(random() % 6);
  const int length = 1 + static_cast<int>(random() % 50);
  for (int i = 0; i < length; ++i) {
    request.prompt_token_ids.push_back(100 + (beginning * 131 + i * 7) % 2000);
  }
  request.sampling.max_tokens =
      1 + static_cast<int>(random() % static_cast<unsigned>(max_output_tokens));
  request.sampling.temperature = random() % 2 == 0 ? 0.0f : 1.0f;
  request.sampling.seed = random() % 100;
  request.speculative.method = methods[random() % methods.size()];
  if (random() % 4 == 0) request.speculative.enabled = false;
  if (random() % 4 == 0) request.speculative.num_speculative_tokens = 1;
  return request;
}

// Random requests, at most 64 at once and every eighth aborted.
class Traffic {
 public:
  Traffic(Engine& engine, std::vector<std::string> methods, int max_output_tokens)
      : engine_(engine), methods_(std::move(methods)), max_output_tokens_(max_output_tokens) {}

  int num_sent() const { return num_sent_; }
  int num_aborted() const { return num_aborted_; }

  void send() {
    std::string id;
    const Status status = engine_.submit(
        random_load_request(random_, methods_, max_output_tokens_),
        [this](const RequestOutput& output) {
          EXPECT_NE(output.finish_reason, FinishReason::kError) << output.status.message();
          if (output.request_finished) num_finished_.fetch_add(1);
        },
        &id);
    ASSERT_TRUE(status.ok()) << status.message();
    ++num_sent_;
    if (random_() % 8 == 0) {
      engine_.abort(id);
      ++num_aborted_;
    }
    wait_until_open(64);
  }

  void wait_until_open(int most) const {
    while (num_sent_ - num_finished_.load() > most) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  Engine& engine_;
  const std::vector<std::string> methods_;
  const int max_output_tokens_;
  std::mt19937 random_{3};
  int num_sent_ = 0;
  int num_aborted_ = 0;
  std::atomic<int> num_finished_{0};
};

// Nothing runs any more, nothing is kept; returns the line that says what happened.
std::string expect_nothing_left(const Engine& engine, const Traffic& traffic,
                                int64_t resident_half_way) {
  expect_all_free(engine);
  const EngineStats stats = engine.stats();
  for (const RequestStats& drafter : stats.drafters) EXPECT_GT(drafter.num_accepted_tokens, 0);
  const int64_t grown = resident_bytes() - resident_half_way;
  if (traffic.num_sent() >= kManyRequests) {
    EXPECT_LT(grown, 32 << 20);
  }
  return std::to_string(traffic.num_sent()) + " requests, " +
         std::to_string(traffic.num_aborted()) + " aborted, " +
         std::to_string(stats.requests.num_preemptions) + " preemptions, " +
         std::to_string(stats.num_steps) + " steps, second half " + std::to_string(grown / 1024) +
         " KiB\n";
}

// The number in the registry of the first of several methods.
class DrafterLoadOf : public testing::TestWithParam<size_t> {};

TEST_P(DrafterLoadOf, TenThousandRequestsLeaveNothingBehind) {
  const std::vector<std::string> names = drafters_from(GetParam());
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(drafters_config(names, 60), &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  ASSERT_EQ(engine->stats().drafters.size(), names.size());
  const int num_requests = num_test_prompts(200) * 50;
  Traffic traffic(*engine, methods_of(names), 12);
  while (traffic.num_sent() < num_requests / 2) ASSERT_NO_FATAL_FAILURE(traffic.send());
  const int64_t resident_half_way = resident_bytes();
  while (traffic.num_sent() < num_requests) ASSERT_NO_FATAL_FAILURE(traffic.send());
  traffic.wait_until_open(0);
  std::cout << expect_nothing_left(*engine, traffic, resident_half_way);
}

// Of every method, as many at once as an engine takes.
INSTANTIATE_TEST_SUITE_P(All, DrafterLoadOf,
                         testing::Range(size_t{0}, drafter_names().size(), size_t{kMaxDrafters}),
                         [](const auto& test) { return drafters_from(test.param).front(); });

// Long outputs in a cache of few blocks, so that sequences are preempted all the time; in one run.
TEST(DrafterLoad, DISABLED_ThirtyThousandStepsWithPreemptionLeaveNothingBehind) {
  constexpr int64_t kSteps = 30000;
  const std::vector<std::string> names = {"eagle3", "draft_model", "mtp", "ngram"};
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(drafters_config(names, 40), &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  Traffic traffic(*engine, methods_of(names), 100);
  const auto run_until = [&](int64_t num_steps) {
    while (engine->stats().num_steps < num_steps && !HasFatalFailure()) {
      for (int i = 0; i < 16; ++i) traffic.send();
    }
  };
  run_until(kSteps / 2);
  const int64_t resident_half_way = resident_bytes();
  run_until(kSteps);
  traffic.wait_until_open(0);
  std::cout << expect_nothing_left(*engine, traffic, resident_half_way);
  EXPECT_GT(engine->stats().requests.num_preemptions, 100);
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
