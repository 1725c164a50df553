#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "conformance/drafter_cases.h"
#include "draft/registry.h"

// Where drafts are cut: by the token budget, by the end of the sequence, by the drafter's own
// length, by an abort; and prefix hits of every length.

namespace foretoken {
namespace {

constexpr int kDrafts = 4;

// Sanitizer builds look at fewer places.
bool runs_all() { return num_test_prompts(200) == 200; }

class DrafterEdges : public ::testing::TestWithParam<std::string> {
 protected:
  static SpeculativeConfig drafter() { return bundled_drafter(GetParam(), kDrafts).config; }

  static std::unique_ptr<Engine> start(const EngineConfig& config) {
    std::unique_ptr<Engine> engine;
    const Status status = make_engine(config, &engine);
    EXPECT_TRUE(status.ok()) << status.message();
    return engine;
  }
};

Request edge_request(int number, int prompt_len, int max_tokens) {
  Request request;
  for (int i = 0; i < prompt_len; ++i) {
    request.prompt_token_ids.push_back(60 + (number * 53 + i * 11) % 2900);
  }
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = number % 2 == 0 ? 0.0f : 0.9f;
  request.sampling.seed = static_cast<uint64_t>(number);
  return request;
}

// Ids and reasons of a batch of requests of different lengths.
std::vector<std::pair<std::vector<int32_t>, std::string>> outcomes(Engine& engine,
                                                                   std::vector<Request> requests,
                                                                   RequestStats* sum = nullptr) {
  std::vector<std::pair<std::vector<int32_t>, std::string>> all;
  for (RequestOutput& output : engine.generate(std::move(requests))) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    if (sum != nullptr) *sum += output.stats;
    all.emplace_back(std::move(output.token_ids), finish_reason_name(output.finish_reason));
  }
  return all;
}

TEST_P(DrafterEdges, EndsAtEveryDistanceFromTheLongestLength) {
  constexpr int kLongest = 128;
  std::vector<Request> requests;
  for (int i = 0; i <= 2 * kDrafts + 2; i += runs_all() ? 1 : 3) {
    // Some end at max_model_len, the others up to K tokens before it.
    requests.push_back(edge_request(i, 90 + i, kLongest - 90 - i - i % (kDrafts + 1)));
    requests.back().sampling.ignore_eos = true;
  }
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_model());
  config.max_model_len = kLongest;
  const auto expected = outcomes(*start(config), requests);
  config.speculative = {drafter()};
  EXPECT_EQ(outcomes(*start(config), requests), expected);
  for (const auto& [ids, reason] : expected) EXPECT_EQ(reason, "length");
}

TEST_P(DrafterEdges, StopTokensInsideDrafts) {
  std::vector<Request> requests;
  for (int i = 0; i < (runs_all() ? 24 : 6); ++i) requests.push_back(edge_request(i, 12, 120));
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_model());
  auto base = start(config);
  // Tokens that occur in the texts end them too.
  const auto free_run = outcomes(*base, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<int32_t>& ids = free_run[i].first;
    if (ids.size() > 10) requests[i].sampling.stop_token_ids = {ids[5 + i % 5]};
  }
  const auto expected = outcomes(*base, requests);
  config.speculative = {drafter()};
  EXPECT_EQ(outcomes(*start(config), requests), expected);
}

TEST_P(DrafterEdges, TokenBudgetCutsTheDraftsAtEveryLength) {
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(edge_request(i, 8, 40));
    requests.back().sampling.ignore_eos = true;
  }
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_model());
  const auto expected = outcomes(*start(config), requests);
  config.speculative = {drafter()};
  for (int budget = 3; budget <= 3 * (kDrafts + 1); budget += runs_all() ? 1 : 4) {
    config.max_num_batched_tokens = budget;
    RequestStats sum;
    EXPECT_EQ(outcomes(*start(config), requests, &sum), expected) << "budget " << budget;
    EXPECT_GT(sum.num_draft_tokens, budget > 6 ? 0 : -1) << "budget " << budget;
  }
}

TEST_P(DrafterEdges, DrafterShorterThanTheTargetStopsForLongSequencesOnly) {
  if (declared_traits(GetParam()).looks_up) GTEST_SKIP() << "it has no length of its own";
  constexpr int kDrafterLen = 48;
  std::vector<Request> requests = {edge_request(0, 20, 100), edge_request(2, 4, 36)};
  for (Request& request : requests) request.sampling.ignore_eos = true;
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_model());
  const auto expected = outcomes(*start(config), requests);
  config.speculative = {drafter()};
  config.speculative[0].max_model_len = kDrafterLen;
  auto engine = start(config);
  EXPECT_EQ(outcomes(*engine, requests), expected);
  const auto drafts_of = [&](int prompt_len, int max_tokens) {
    Request request = edge_request(4, prompt_len, max_tokens);
    request.sampling.ignore_eos = true;
    RequestStats sum;
    (void)outcomes(*engine, {request}, &sum);
    return sum.num_draft_tokens;
  };
  EXPECT_GT(drafts_of(8, 30), 0);
  EXPECT_EQ(drafts_of(kDrafterLen + 4, 60), 0);
  EXPECT_EQ(drafts_of(8, 200), drafts_of(8, 300)) << "nothing is drafted beyond its length";
}

TEST_P(DrafterEdges, CancelledAtEveryStepNumber) {
  EngineConfig config = config_of({.steps_in_flight = 2, .prefix_caching = true}, bundled_model());
  config.speculative = {drafter()};
  auto engine = start(config);
  Request neighbour = edge_request(1, 10, 32);
  neighbour.sampling.ignore_eos = true;
  const std::vector<int32_t> expected = engine->generate({neighbour})[0].token_ids;
  for (size_t after = 0; after < 20; after += runs_all() ? 1 : 6) {
    Request victim = edge_request(static_cast<int>(after), 30, 900);
    victim.sampling.ignore_eos = true;
    expect_cancel_harms_nobody(*engine, victim, neighbour, expected, after);
  }
}

// A hit of h blocks gives the drafts of a cold start: counts by position are equal for every h.
TEST_P(DrafterEdges, PrefixHitsOfEveryLengthDraftLikeAColdStart) {
  EngineConfig config = config_of({.steps_in_flight = 2, .prefix_caching = true}, bundled_model());
  config.speculative = {drafter()};
  const auto run = [](Engine& engine, const Request& request) {
    RequestOutput output = std::move(engine.generate({request})[0]);
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    return output;
  };
  const std::vector<int> few = {16, 47};
  const std::vector<int> all = {15, 16, 17, 32, 47, 64, 80, 96};
  for (const int prefix : runs_all() ? all : few) {
    Request whole = edge_request(2, 100, 24);
    whole.sampling.ignore_eos = true;
    config.enable_prefix_caching = false;
    const RequestOutput cold = run(*start(config), whole);
    config.enable_prefix_caching = true;
    auto engine = start(config);
    Request first = whole;
    first.prompt_token_ids.resize(static_cast<size_t>(prefix));
    first.sampling.max_tokens = 1;
    // Half of the time without drafts, so that the hit's entries have yet to be computed.
    first.speculative.enabled = prefix % 2 == 0;
    (void)run(*engine, first);
    const RequestOutput warm = run(*engine, whole);
    EXPECT_EQ(warm.stats.num_cached_tokens, prefix / 16 * 16) << prefix;
    EXPECT_EQ(warm.token_ids, cold.token_ids) << prefix;
    EXPECT_EQ(warm.stats.num_drafts, cold.stats.num_drafts) << prefix;
    EXPECT_EQ(warm.stats.num_draft_tokens_per_pos, cold.stats.num_draft_tokens_per_pos) << prefix;
    EXPECT_EQ(warm.stats.num_accepted_tokens_per_pos, cold.stats.num_accepted_tokens_per_pos)
        << prefix;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DrafterEdges, ::testing::ValuesIn(drafter_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace foretoken
