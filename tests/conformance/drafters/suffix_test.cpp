#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "conformance/drafter_cases.h"
#include "device/resident_memory.h"
#include "support/dialled_set.h"

// Suffix decoding through the engine: past answers are drafted, those of other salts never, counts
// follow from the order of arrival, and the memory is what it was.

namespace foretoken {
namespace {

constexpr int kAnswer = 48;
constexpr int kFewSuffixBlocks = 256;  // soon all written

class SuffixEngine : public testing::Test {
 protected:
  static std::unique_ptr<Engine> start(int steps_in_flight = 2, const std::string& policy = "fixed",
                                       int num_blocks = 0) {
    EngineConfig config = config_of(
        {.steps_in_flight = steps_in_flight, .num_blocks = num_blocks, .prefix_caching = true},
        bundled_model());
    config.speculative = {bundled_drafter("suffix", 8).config};
    config.speculative[0].method_fields.clear();
    config.speculative[0].length_policy = policy;
    std::unique_ptr<Engine> engine;
    const Status status = make_engine(config, &engine);
    EXPECT_TRUE(status.ok()) << status.message();
    return engine;
  }
  // Hot, so that nothing but an equal seed gives an equal text.
  static Request request(int number, const std::string& salt = "", int max_tokens = kAnswer) {
    Request request;
    request.prompt = bench_prompts(8)[static_cast<size_t>(number % 8)];
    request.cache_salt = salt;
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 1.0f;
    request.sampling.seed = static_cast<uint64_t>(number);
    request.sampling.ignore_eos = true;
    return request;
  }
  static RequestOutput run(Engine& engine, const Request& request) {
    RequestOutput output = std::move(engine.generate({request})[0]);
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    return output;
  }
};

TEST_F(SuffixEngine, AnAnswerIsDraftedWhenItComesAgain) {
  const auto engine = start();
  const RequestOutput first = run(*engine, request(3));
  const RequestOutput again = run(*engine, request(3));
  EXPECT_EQ(again.token_ids, first.token_ids);
  EXPECT_GT(again.stats.num_accepted_tokens, first.stats.num_accepted_tokens + kAnswer / 2);
  EXPECT_LE(again.stats.num_steps, kAnswer / 4);
}

TEST_F(SuffixEngine, OtherSaltsAnswersAreNeverDrafted) {
  const auto engine = start();
  const auto alone = start();
  for (int i = 0; i < 4; ++i) (void)run(*engine, request(i, "one"));
  (void)run(*engine, request(2, ""));
  for (int i = 0; i < 4; ++i) {
    // As if nobody else had asked anything.
    const RequestOutput expected = run(*alone, request(i, "two"));
    const RequestOutput output = run(*engine, request(i, "two"));
    EXPECT_EQ(output.token_ids, expected.token_ids);
    EXPECT_EQ(output.stats.num_draft_tokens_per_pos, expected.stats.num_draft_tokens_per_pos) << i;
    EXPECT_EQ(output.stats.num_accepted_tokens, expected.stats.num_accepted_tokens) << i;
  }
  EXPECT_GT(run(*engine, request(1, "one")).stats.num_accepted_tokens, kAnswer / 2);
}

TEST_F(SuffixEngine, CountsFollowFromTheOrderOfArrival) {
  std::vector<std::vector<int64_t>> all;
  for (const int steps_in_flight : {1, 2, 3}) {
    const auto engine = start(steps_in_flight);
    std::vector<int64_t>& counts = all.emplace_back();
    for (int i = 0; i < 24; ++i) {
      const RequestStats stats = run(*engine, request(i % 5, "", 20 + 3 * (i % 9))).stats;
      counts.push_back(stats.num_draft_tokens);
      counts.push_back(stats.num_accepted_tokens);
    }
  }
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], all[0]);
}

TEST_F(SuffixEngine, WhatWasSaidWhileItRestedIsKnown) {
  const auto engine = start(2, "off");
  const auto drafting = start();
  EXPECT_EQ(run(*engine, request(3)).stats.num_draft_tokens, 0);
  EXPECT_GT(run(*drafting, request(3)).token_ids.size(), 0u);
  Request quiet = request(5);
  quiet.speculative.enabled = false;
  const RequestOutput first = run(*drafting, quiet);
  EXPECT_EQ(first.stats.num_draft_tokens, 0);
  const RequestOutput again = run(*drafting, request(5));
  EXPECT_EQ(again.token_ids, first.token_ids);
  EXPECT_GT(again.stats.num_accepted_tokens, kAnswer / 2);
}

TEST_F(SuffixEngine, ARequestOfAListThatOptedOutTeaches) {
  EngineConfig config = config_of({.prefix_caching = true}, bundled_model());
  config.speculative = {bundled_drafter("suffix", 8).config, bundled_drafter("ngram", 4).config};
  config.speculative[0].leads = true;
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  ASSERT_TRUE(status.ok()) << status.message();
  Request quiet = request(5);
  quiet.speculative.enabled = false;
  const RequestOutput first = run(*engine, quiet);
  EXPECT_EQ(first.stats.num_draft_tokens, 0);
  const RequestOutput again = run(*engine, request(5));
  EXPECT_EQ(again.token_ids, first.token_ids);
  EXPECT_GT(again.stats.num_accepted_tokens, kAnswer / 2);
}

using EachOutput = std::function<void(int, const RequestOutput&)>;

void expect_flat_memory(Engine& engine, int count, const std::function<Request(int)>& request_of,
                        const EachOutput& each_output = nullptr) {
  const auto run_some = [&](int from, int to) {
    for (int begin = from; begin < to; begin += 32) {
      std::vector<Request> requests;
      for (int i = begin; i < std::min(to, begin + 32); ++i) requests.push_back(request_of(i));
      int number = begin;
      for (const RequestOutput& output : engine.generate(std::move(requests))) {
        EXPECT_TRUE(output.status.ok()) << output.status.message();
        if (each_output) each_output(number++, output);
      }
    }
  };
  // The KV cache and the table are in memory once they were written.
  run_some(0, count / 2);
  const int64_t before = resident_bytes();
  run_some(count / 2, count);
  const int64_t grown = resident_bytes() - before;
  std::cout << count << " requests, resident +" << (grown >> 10) << " KiB\n";
  EXPECT_LT(grown, int64_t{16} << 20);
  expect_all_free(engine);
}

TEST_F(SuffixEngine, MemoryIsFlat) {
  const int count = num_test_prompts(200) == 200 ? 10000 : 640;
  expect_flat_memory(*start(2, "fixed", kFewSuffixBlocks), count, [](int i) {
    return request(i, i % 3 == 0 ? "salt " + std::to_string(i) : "", 2 + i % 3);
  });
}

// On a target whose texts never repeat themselves and are those of others: each draft is one of a
// past answer. Every third request has a salt of its own.
TEST_F(SuffixEngine, MemoryIsFlatAndSaltsStayApartForManyRequests) {
  const test::DialledSet& set = test::DialledSet::of();
  const DialledCycle cycle(set.shape().vocab_size, set.shape().seed);
  EngineConfig config = config_of({.num_blocks = kFewSuffixBlocks, .prefix_caching = true}, set);
  config.speculative = {bundled_drafter("suffix", 8).config};
  config.speculative[0].method_fields.clear();
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  ASSERT_TRUE(status.ok()) << status.message();
  int64_t own_salt = 0, no_salt = 0;
  const int num_requests = num_repeats(100'000);
  expect_flat_memory(
      *engine, num_requests,
      [&](int i) {
        Request request;
        for (int j = 0; j < 5; ++j) request.prompt_token_ids.push_back(cycle.at(7 * i + j));
        if (i % 3 == 0) request.cache_salt = "salt " + std::to_string(i);
        request.sampling.max_tokens = 2 + i % 4;
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        return request;
      },
      [&](int i, const RequestOutput& output) {
        (i % 3 == 0 ? own_salt : no_salt) += output.stats.num_draft_tokens;
      });
  EXPECT_EQ(own_salt, 0);
  EXPECT_GT(no_salt, num_requests / 2);
}

}  // namespace
}  // namespace foretoken
