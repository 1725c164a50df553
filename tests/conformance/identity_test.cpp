#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <random>

#include "conformance/harness.h"
#include "model/golden.h"

// The same ids whatever shares the batch, however prompts are cut, however many steps are in
// flight, with and without drafts, preemption and prefix hits: each axis alone against the base,
// and random combinations of all.

namespace foretoken {
namespace {

constexpr int kTokens = 64;
constexpr int kFewBlocks = 26;  // hardly more than one sequence at full length

class Identity : public ::testing::TestWithParam<bool> {
 protected:
  // Alone, whole prompts, one step in flight, no drafts, no prefix cache, graphs.
  static const RunResult& base(bool sampled) {
    static std::optional<RunResult> results[2];
    if (!results[sampled]) {
      results[sampled] =
          run_variant({}, bundled_model(), bench_prompts(num_test_prompts(200)), sampled, kTokens);
    }
    return *results[sampled];
  }

  RunResult expect_same(const Variant& variant) {
    const auto start = std::chrono::steady_clock::now();
    const RunResult other = run_variant(variant, bundled_model(),
                                        bench_prompts(num_test_prompts(200)), GetParam(), kTokens);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const int differing = count_differences(base(GetParam()), other, variant.describe());
    std::cout << "device=" << test_device_name() << " " << variant.describe() << ": " << differing
              << " of " << other.ids.size() << " prompts differ, drafted "
              << other.stats.num_draft_tokens << ", accepted " << other.stats.num_accepted_tokens
              << ", preemptions " << other.stats.num_preemptions << ", cached tokens "
              << other.stats.num_cached_tokens << ", " << seconds << " s\n";
    EXPECT_EQ(differing, 0);
    return other;
  }
};

TEST_P(Identity, Ngram) {
  const RunResult result = expect_same({.name = "n-gram", .num_draft_tokens = 4});
  EXPECT_GT(result.stats.num_accepted_tokens, 0);
  EXPECT_GT(result.stats.num_draft_tokens, result.stats.num_accepted_tokens);
}

TEST_P(Identity, TwoStepsInFlight) { expect_same({.name = "two in flight", .steps_in_flight = 2}); }

TEST_P(Identity, Batched) { expect_same({.name = "batched", .batch = 32}); }

TEST_P(Identity, Chunked) {
  expect_same({.name = "chunks of 16", .batch = 32, .max_batched_tokens = 16});
}

TEST_P(Identity, Preempted) {
  const RunResult result = expect_same({.name = "preempted",
                                        .num_draft_tokens = 4,
                                        .steps_in_flight = 2,
                                        .batch = 32,
                                        .num_blocks = kFewBlocks});
  EXPECT_GT(result.stats.num_preemptions, 0);
}

TEST_P(Identity, ColdPrefixCache) {
  expect_same({.name = "cold prefix cache", .batch = 32, .prefix_caching = true});
}

TEST_P(Identity, WarmPrefixCache) {
  const RunResult result = expect_same({.name = "warm prefix cache",
                                        .batch = 32,
                                        .num_blocks = 8192,
                                        .prefix_caching = true,
                                        .warm = true});
  EXPECT_GT(result.stats.num_cached_tokens, 0);
}

TEST_P(Identity, Eager) { expect_same({.name = "eager", .batch = 32, .eager = true}); }

TEST_P(Identity, Everything) {
  expect_same({.name = "everything",
               .num_draft_tokens = 4,
               .steps_in_flight = 2,
               .batch = 32,
               .max_batched_tokens = 64,
               .num_blocks = 4096,
               .prefix_caching = true,
               .warm = true});
}

INSTANTIATE_TEST_SUITE_P(All, Identity, ::testing::Bool(), [](const auto& param) {
  return param.param ? std::string("Sampled") : std::string("Greedy");
});

TEST(IdentityCombinations, ThirtyRandomOnes) {
  const std::vector<std::string> prompts = bench_prompts(num_test_prompts(20));
  const RunResult bases[2] = {run_variant({}, bundled_model(), prompts, false, kTokens),
                              run_variant({}, bundled_model(), prompts, true, kTokens)};
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  const int num_combinations = num_test_prompts(200) < 200 ? 6 : 30;
  for (int i = 0; i < num_combinations; ++i) {
    const Variant variant{.name = "combination " + std::to_string(i),
                          .num_draft_tokens = pick({0, 1, 3, 8, 16}),
                          .steps_in_flight = pick({1, 2, 3}),
                          .batch = pick({1, 5, 20}),
                          .max_batched_tokens = pick({16, 37, 512}),
                          .num_blocks = pick({0, 26, kFewBlocks}),
                          .prefix_caching = pick({0, 1}) == 1,
                          .warm = pick({0, 0, 1}) == 1,
                          .eager = pick({0, 1}) == 1};
    const bool sampled = pick({0, 1}) == 1;
    const RunResult other = run_variant(variant, bundled_model(), prompts, sampled, kTokens);
    EXPECT_EQ(count_differences(bases[sampled], other, variant.describe()), 0);
  }
}

// The same for random models of every architecture: half of the requests greedy, half sampled.
class ArchitectureIdentity : public ::testing::TestWithParam<test::GoldenCase> {
 protected:
  static std::vector<Request> make_requests(int num_requests, int max_tokens) {
    std::vector<Request> requests;
    for (int i = 0; i < num_requests; ++i) {
      const auto& ids = GetParam().prompts->at(static_cast<size_t>(i) % 2).at("ids");
      Request request;
      request.prompt_token_ids = ids.get<std::vector<int32_t>>();
      // A repeated text, so that n-gram drafts are made.
      for (int j = 0; j < 12 * (i / 2); ++j) request.prompt_token_ids.push_back(30 + j % 4);
      request.sampling.max_tokens = max_tokens;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
      request.sampling.seed = static_cast<uint64_t>(i);
      request.sampling.ignore_eos = true;
      requests.push_back(std::move(request));
    }
    return requests;
  }

  static RunResult run(const Variant& variant, int num_requests = 6, int max_tokens = 80) {
    EngineConfig config = config_of(variant, GetParam().folder);
    config.max_model_len = GetParam().max_model_len;
    config.hf_overrides = GetParam().hf_overrides;
    config.skip_tokenizer_init = true;
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    RunResult result;
    for (int round = 0; made.ok() && round < (variant.warm ? 2 : 1); ++round) {
      result = {};
      std::vector<Request> requests = make_requests(num_requests, max_tokens);
      for (size_t begin = 0; begin < requests.size(); begin += static_cast<size_t>(variant.batch)) {
        const size_t end = std::min(requests.size(), begin + static_cast<size_t>(variant.batch));
        const auto first = requests.begin() + static_cast<ptrdiff_t>(begin);
        for (RequestOutput& output : engine->generate(
                 std::vector<Request>(first, first + static_cast<ptrdiff_t>(end - begin)))) {
          EXPECT_TRUE(output.status.ok()) << output.status.message();
          result.stats.num_draft_tokens += output.stats.num_draft_tokens;
          result.stats.num_accepted_tokens += output.stats.num_accepted_tokens;
          result.stats.num_preemptions += output.stats.num_preemptions;
          result.ids.push_back(std::move(output.token_ids));
        }
      }
    }
    if (made.ok()) expect_all_free(*engine);
    return result;
  }
};

TEST_P(ArchitectureIdentity, SameIdsHoweverTheyAreMade) {
  const RunResult base = run({});
  const Variant speculative = {
      .name = "speculative", .num_draft_tokens = 4, .steps_in_flight = 2, .batch = 6};
  const Variant short_of_blocks = {.name = "short of blocks",
                                   .num_draft_tokens = 3,
                                   .steps_in_flight = 2,
                                   .batch = 6,
                                   .max_batched_tokens = 64,
                                   .num_blocks = kFewBlocks};
  const Variant cached = {.name = "cached",
                          .num_draft_tokens = 2,
                          .steps_in_flight = 3,
                          .batch = 6,
                          .max_batched_tokens = 37,
                          .prefix_caching = true,
                          .warm = true};
  for (const Variant& variant : {speculative, short_of_blocks, cached}) {
    const RunResult other = run(variant);
    EXPECT_EQ(count_differences(base, other, variant.describe()), 0);
    EXPECT_GT(other.stats.num_draft_tokens, 0) << variant.name;
    if (variant.num_blocks == kFewBlocks) {
      EXPECT_GT(other.stats.num_preemptions, 0);
    }
  }
}

std::string case_name(const testing::TestParamInfo<test::GoldenCase>& param) {
  std::string name = param.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureIdentity, ::testing::ValuesIn(test::architecture_cases()),
                         case_name);

// The families beside them, which differ in what their layers are made of and not in how steps are
// cut: a few requests alone, and together with drafts.
class FamilyIdentity : public ArchitectureIdentity {};

TEST_P(FamilyIdentity, SameIdsAndCountsWithDraftsAndBesideOthers) {
  const int num_requests = num_test_prompts(4), max_tokens = 40;
  const RunResult base = run({}, num_requests, max_tokens);
  std::vector<RunResult> speculative;
  for (const int steps_in_flight : {1, 2}) {
    const Variant variant = {.name = "speculative",
                             .num_draft_tokens = 4,
                             .steps_in_flight = steps_in_flight,
                             .batch = num_requests,
                             .max_batched_tokens = 37};
    const RunResult& other = speculative.emplace_back(run(variant, num_requests, max_tokens));
    EXPECT_EQ(count_differences(base, other, variant.describe()), 0);
    EXPECT_GT(other.stats.num_draft_tokens, 0);
  }
  EXPECT_EQ(speculative[0].stats.num_draft_tokens, speculative[1].stats.num_draft_tokens);
  EXPECT_EQ(speculative[0].stats.num_accepted_tokens, speculative[1].stats.num_accepted_tokens);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyIdentity, ::testing::ValuesIn(test::family_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Early, FamilyIdentity, ::testing::ValuesIn(test::early_cases()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Recurrent, FamilyIdentity, ::testing::ValuesIn(test::recurrent_cases()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Mixtures, FamilyIdentity, ::testing::ValuesIn(test::mixture_cases()),
                         case_name);

}  // namespace
}  // namespace foretoken
