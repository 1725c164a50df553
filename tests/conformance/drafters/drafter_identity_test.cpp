#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <utility>

#include "conformance/drafter_cases.h"
#include "draft/registry.h"

// Every drafter of the registry leaves the ids as they are without speculation: each alone, with
// all that can run beside it, preempted, in random combinations, and on MATH-500 as a whole.

namespace foretoken {
namespace {

constexpr int kDrafterTokens = 64;
constexpr int kFewDrafterBlocks = 26;  // hardly more than one sequence at full length

class DrafterIdentity : public ::testing::TestWithParam<SampledDrafter> {
 protected:
  static const RunResult& base(bool sampled, int num_prompts) {
    static std::map<std::pair<bool, int>, RunResult> results;
    RunResult& result = results[{sampled, num_prompts}];
    if (result.ids.empty()) {
      result = run_variant({.batch = 32}, bundled_model(), bench_prompts(num_prompts), sampled,
                           kDrafterTokens);
    }
    return result;
  }

  RunResult expect_same(const Variant& variant, const SpeculativeConfig& config,
                        int num_prompts = 200) {
    const bool sampled = GetParam().sampled;
    num_prompts = num_test_prompts(num_prompts);
    const RunResult other =
        run_with_drafters(variant, {config}, bench_prompts(num_prompts), sampled, kDrafterTokens);
    const std::string what = GetParam().drafter + ", " + variant.describe();
    const int differing = count_differences(base(sampled, num_prompts), other, what);
    std::cout << "device=" << test_device_name() << " " << what << ": " << differing << " of "
              << other.ids.size() << " prompts differ, drafted " << other.stats.num_draft_tokens
              << ", accepted " << other.stats.num_accepted_tokens << ", preemptions "
              << other.stats.num_preemptions << ", cached tokens " << other.stats.num_cached_tokens
              << "\n";
    EXPECT_EQ(differing, 0);
    if (config.length_policy == "adaptive") return other;
    EXPECT_GT(other.stats.num_accepted_tokens, 0);
    // One that learns knows the whole text the second time.
    if (variant.warm && declared_traits(GetParam().drafter).learns) return other;
    EXPECT_GT(other.stats.num_draft_tokens, other.stats.num_accepted_tokens);
    return other;
  }

  SpeculativeConfig drafter(int num_draft_tokens) const {
    return bundled_drafter(GetParam().drafter, num_draft_tokens).config;
  }
};

TEST_P(DrafterIdentity, Alone) { expect_same({.name = "alone"}, drafter(3)); }

TEST_P(DrafterIdentity, Everything) {
  const RunResult result = expect_same({.name = "everything",
                                        .steps_in_flight = 2,
                                        .batch = 32,
                                        .max_batched_tokens = 64,
                                        .num_blocks = 4096,
                                        .prefix_caching = true,
                                        .warm = true},
                                       drafter(4));
  EXPECT_GT(result.stats.num_cached_tokens, 0);
}

TEST_P(DrafterIdentity, Preempted) {
  const RunResult result = expect_same({.name = "preempted",
                                        .steps_in_flight = 2,
                                        .batch = 32,
                                        .num_blocks = kFewDrafterBlocks,
                                        .prefix_caching = true},
                                       drafter(4));
  EXPECT_GT(result.stats.num_preemptions, 0);
}

TEST_P(DrafterIdentity, Adaptive) {
  SpeculativeConfig config = drafter(5);
  config.length_policy = "adaptive";
  expect_same({.name = "adaptive", .steps_in_flight = 2, .batch = 8}, config, 60);
}

TEST_P(DrafterIdentity, ProbabilisticDrafts) {
  if (declared_traits(GetParam().drafter).looks_up) GTEST_SKIP() << "it has no distribution";
  SpeculativeConfig config = drafter(3);
  config.draft_sample_method = "probabilistic";
  expect_same({.name = "probabilistic", .steps_in_flight = 2, .batch = 16}, config, 60);
}

TEST_P(DrafterIdentity, ReducedVocabulary) {
  if (declared_traits(GetParam().drafter).looks_up) GTEST_SKIP() << "it has no output matrix";
  SpeculativeConfig config = drafter(3);
  config.draft_vocab_size = 700;
  expect_same({.name = "reduced vocabulary", .steps_in_flight = 2, .batch = 16}, config, 60);
}

// Far more than the rows of a step have room for, or a drafter's block.
TEST_P(DrafterIdentity, AsManyDraftsAsThereCanBe) {
  expect_same({.name = "64 drafts", .steps_in_flight = 2, .batch = 16},
              drafter(kMaxSpeculativeTokens), 16);
}

INSTANTIATE_TEST_SUITE_P(All, DrafterIdentity, ::testing::ValuesIn(sampled_drafters()),
                         [](const auto& param) {
                           return param.param.drafter +
                                  (param.param.sampled ? "Sampled" : "Greedy");
                         });

TEST(DrafterIdentityCombinations, RandomOnes) {
  const std::vector<std::string> prompts = bench_prompts(num_test_prompts(20));
  const RunResult bases[2] = {run_variant({}, bundled_model(), prompts, false, kDrafterTokens),
                              run_variant({}, bundled_model(), prompts, true, kDrafterTokens)};
  std::mt19937 random(11);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  const std::vector<std::string> names = drafter_names();
  const int num_combinations = num_test_prompts(200) < 200 ? 6 : 30;
  for (int i = 0; i < num_combinations; ++i) {
    const Variant variant{.name = "combination " + std::to_string(i),
                          .steps_in_flight = pick({1, 2, 3}),
                          .batch = pick({1, 5, 20}),
                          .max_batched_tokens = pick({16, 37, 512}),
                          .num_blocks = pick({0, kFewDrafterBlocks}),
                          .prefix_caching = pick({0, 1}) == 1,
                          .warm = pick({0, 0, 1}) == 1,
                          .eager = pick({0, 1}) == 1};
    const std::string& name = names[random() % names.size()];
    SpeculativeConfig config = bundled_drafter(name, pick({1, 3, 8, 16})).config;
    config.length_policy = pick({0, 1}) == 1 ? "adaptive" : "fixed";
    if (!declared_traits(name).looks_up && pick({0, 1}) == 1)
      config.draft_sample_method = "probabilistic";
    const bool sampled = pick({0, 1}) == 1;
    const RunResult other = run_with_drafters(variant, {config}, prompts, sampled, kDrafterTokens);
    EXPECT_EQ(count_differences(bases[sampled], other, name + ", " + variant.describe()), 0);
  }
}

class DrafterIdentityMath500 : public ::testing::TestWithParam<std::string> {
 protected:
  static RunResult run(std::vector<SpeculativeConfig> drafters) {
    constexpr int kFewTokens = 32;
    std::vector<std::string> prompts = math500_prompts();
    prompts.resize(static_cast<size_t>(num_test_prompts(500)));
    const Variant variant{.name = "MATH-500", .steps_in_flight = 2, .batch = 32};
    EngineConfig config = config_of(variant, bundled_model());
    config.max_model_len = 2048;
    config.speculative = std::move(drafters);
    return run_config(config, variant, prompts, false, kFewTokens);
  }
  // Without speculation.
  static const RunResult& base() {
    static const RunResult result = run({});
    return result;
  }
};

TEST_P(DrafterIdentityMath500, Whole) {
  const DrafterCase drafter = bundled_drafter(GetParam(), 3);
  const RunResult other = run({drafter.config});
  const int differing = count_differences(base(), other, drafter.name);
  std::cout << "device=" << test_device_name() << " MATH-500, " << drafter.name << ": " << differing
            << " of " << other.ids.size() << " differ, acceptance "
            << static_cast<double>(other.stats.num_accepted_tokens) /
                   static_cast<double>(other.stats.num_draft_tokens)
            << "\n";
  EXPECT_EQ(differing, 0);
}

INSTANTIATE_TEST_SUITE_P(All, DrafterIdentityMath500, ::testing::ValuesIn(drafter_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foretoken
