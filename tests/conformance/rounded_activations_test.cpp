#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"
#include "draft/registry.h"

// With --activation-scheme dynamic ids depend on nothing that runs beside a request: every drafter,
// batches, chunks, steps in flight, ranks.

namespace foretoken {
namespace {

constexpr int kRoundedTokens = 24;
constexpr int kRoundedDrafts = 4;

RunResult run_rounded(const Variant& variant, const std::vector<SpeculativeConfig>& drafters,
                      bool sampled, int ranks = 1) {
  EngineConfig config = config_of(variant, bundled_model());
  config.dtype = "bfloat16";
  config.quantization = "fp8";
  config.activation_scheme = "dynamic";
  config.parallel.tensor_parallel_size = ranks;
  config.speculative = drafters;
  return run_config(config, variant, bench_prompts(num_test_prompts(4)), sampled, kRoundedTokens);
}

class RoundedActivations : public ::testing::TestWithParam<SampledDrafter> {
 protected:
  // Without speculation, one request after the other.
  static const RunResult& base(int ranks) {
    static std::map<std::pair<bool, int>, RunResult> results;
    RunResult& result = results[{GetParam().sampled, ranks}];
    if (result.ids.empty()) {
      result = run_rounded({.name = "alone"}, {}, GetParam().sampled, ranks);
    }
    return result;
  }
  static RunResult expect_same(const Variant& variant, int ranks = 1) {
    const std::string& name = GetParam().drafter;
    const RunResult other = run_rounded(variant, {bundled_drafter(name, kRoundedDrafts).config},
                                        GetParam().sampled, ranks);
    EXPECT_EQ(count_differences(base(ranks), other, name + ", " + variant.describe()), 0);
    return other;
  }
};

TEST_P(RoundedActivations, IdsAreTheSame) {
  const RunResult alone = expect_same({.name = "alone"});
  std::cout << GetParam().drafter << ": drafted " << alone.stats.num_draft_tokens << ", accepted "
            << alone.stats.num_accepted_tokens << "\n";
  EXPECT_GT(alone.stats.num_accepted_tokens, 0);
  expect_same({.name = "chunked", .steps_in_flight = 3, .batch = 32, .max_batched_tokens = 37});
}

TEST_P(RoundedActivations, IdsOfRanksAreTheSame) {
  if (const std::string missing = missing_devices(2); !missing.empty()) GTEST_SKIP() << missing;
  expect_same({.name = "batched", .steps_in_flight = 2, .batch = 32}, 2);
}

INSTANTIATE_TEST_SUITE_P(All, RoundedActivations, ::testing::ValuesIn(sampled_drafters()),
                         [](const auto& test) {
                           return test.param.drafter + (test.param.sampled ? "Sampled" : "Greedy");
                         });

}  // namespace
}  // namespace foretoken
